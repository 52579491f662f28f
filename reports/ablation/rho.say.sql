SELECT group_concat(printf('%s: lowest mean at rho %.2g, %+.4f nats against pure MoE (95 %% interval %+.4f to %+.4f, %d seeds); %d of %d runs have a collapsed router, marked by crosses',
        b.series, b.x, b.y, b.lo, b.hi, b.n,
        (SELECT count(*) FROM figure s WHERE s.part = 'seed' AND s.series = b.series AND s.collapsed > 0),
        (SELECT count(*) FROM figure s WHERE s.part = 'seed' AND s.series = b.series)), '. ') || '.'
FROM (SELECT *, row_number() OVER (PARTITION BY series ORDER BY y) AS place FROM figure WHERE part = 'mean') b
WHERE b.place = 1;
