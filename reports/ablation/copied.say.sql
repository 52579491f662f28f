SELECT group_concat(printf('%s: lowest at rho %.2g where the context has no copy (%s), at rho %.2g where it has (%s); the pure MoE loses %.3f and %.3f there',
        a.series, a.x, interval(a.y, a.lo, a.hi), b.x, interval(b.y, b.lo, b.hi), a.moe, b.moe), '. ') || '. Intervals hold 95 %.'
FROM (SELECT *, row_number() OVER (PARTITION BY series ORDER BY y) AS place FROM figure WHERE part = 'mean' AND what = 'not copied' ORDER BY budget) a
JOIN (SELECT *, row_number() OVER (PARTITION BY series ORDER BY y) AS place FROM figure WHERE part = 'mean' AND what = 'copied') b USING (series, place)
WHERE a.place = 1;
