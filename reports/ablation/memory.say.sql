SELECT group_concat(printf('%s: %s nats with %.3g million parameters, %s with %.3g million', a.series, interval(a.y, a.lo, a.hi), a.x / 1e6,
        interval(b.y, b.lo, b.hi), b.x / 1e6), '; ') || '. Intervals hold 95 %.'
FROM (SELECT *, row_number() OVER (PARTITION BY series ORDER BY x) AS place FROM figure WHERE part = 'mean') a
JOIN (SELECT *, row_number() OVER (PARTITION BY series ORDER BY x DESC) AS place FROM figure WHERE part = 'mean') b USING (series)
WHERE a.place = 1 AND b.place = 1;
