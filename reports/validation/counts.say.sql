SELECT printf('Exact stack distances differ from the row cache in %d of %d caches, distinct rows in %d of %d batches. '
    || 'On the mean over caches SHARDS is off by %.4f and AET by %.4f (gate 0.01 for each text; the worst are %.4f and %.4f). Texts: %s.',
    count(*) FILTER (WHERE model LIKE 'exact%' AND abs(predicted - counted) > 1e-9), count(*) FILTER (WHERE model LIKE 'exact%'),
    count(*) FILTER (WHERE model LIKE 'distinct%' AND abs(predicted - counted) > 1e-9), count(*) FILTER (WHERE model LIKE 'distinct%'),
    avg(abs(predicted - counted)) FILTER (WHERE model LIKE 'SHARDS%'), avg(abs(predicted - counted)) FILTER (WHERE model LIKE 'AET%'),
    (SELECT max(e) FROM (SELECT avg(abs(predicted - counted)) AS e FROM figure WHERE model LIKE 'SHARDS%' GROUP BY corpus)),
    (SELECT max(e) FROM (SELECT avg(abs(predicted - counted)) AS e FROM figure WHERE model LIKE 'AET%' GROUP BY corpus)),
    (SELECT group_concat(corpus, ', ') FROM (SELECT DISTINCT corpus FROM figure)))
FROM figure;
