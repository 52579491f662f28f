SELECT group_concat(printf('%s: %+.4f nats with %.3g million parameters, %+.4f with %.3g million', a.series, a.y, a.x / 1e6, b.y, b.x / 1e6), '; ') || '.'
FROM (SELECT *, row_number() OVER (PARTITION BY series ORDER BY x) AS place FROM figure WHERE part = 'mean') a
JOIN (SELECT *, row_number() OVER (PARTITION BY series ORDER BY x DESC) AS place FROM figure WHERE part = 'mean') b USING (series)
WHERE a.place = 1 AND b.place = 1;
