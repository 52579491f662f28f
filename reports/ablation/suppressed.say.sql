SELECT printf('%s: %+.3f nats in the rarest tenth (ids that follow each other %.3g times in training), %+.3f in the most frequent one (%.3g times); with the memory silenced %+.3f and %+.3f.',
    a.models, a.difference, a.count_in_training, b.difference, b.count_in_training, c.difference, d.difference)
FROM figure a JOIN figure b ON b.part = 'mean' AND b.series = a.series AND b.place = 10
JOIN figure c ON c.part = 'mean' AND c.series LIKE '%silenced%' AND c.place = 1
JOIN figure d ON d.part = 'mean' AND d.series LIKE '%silenced%' AND d.place = 10
WHERE a.part = 'mean' AND a.place = 1 AND a.series NOT LIKE '%silenced%';
