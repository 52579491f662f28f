SELECT group_concat(printf('%s: lowest mean at rho %.2g, %s nats against pure MoE, %d seeds; %d of %d runs have a collapsed router, marked by crosses',
        b.series, b.x, interval(b.y, b.lo, b.hi), b.n,
        (SELECT count(*) FROM figure s WHERE s.part = 'seed' AND s.series = b.series AND s.collapsed > 0),
        (SELECT count(*) FROM figure s WHERE s.part = 'seed' AND s.series = b.series)), '. ') || '. Intervals hold 95 %.'
FROM (SELECT *, row_number() OVER (PARTITION BY series ORDER BY y) AS place FROM figure WHERE part = 'mean' ORDER BY budget) b
WHERE b.place = 1;
