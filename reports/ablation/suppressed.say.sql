WITH d AS (
    SELECT e.part, e.what, e.place, s.loss - e.loss AS damage FROM figure e JOIN figure s USING (part, what)
    WHERE e.series LIKE 'Engram%' AND e.series NOT LIKE '%silenced%' AND s.series LIKE '%silenced%'
)
SELECT printf('Silencing the memory costs %.3f nats in the rarest tenth and %.3f in the most frequent one; most by class: %s (%.3f).',
    (SELECT damage FROM d WHERE part = 'decile' ORDER BY place LIMIT 1), (SELECT damage FROM d WHERE part = 'decile' ORDER BY place DESC LIMIT 1),
    (SELECT what FROM d WHERE part = 'class' ORDER BY damage DESC LIMIT 1), (SELECT max(damage) FROM d WHERE part = 'class'))
FROM d LIMIT 1;
