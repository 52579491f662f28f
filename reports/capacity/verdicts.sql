-- The plan in one table.
-- empty: This run holds no plan.
WITH t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.traffic' AS traffic, a ->> '$.layer' AS layer, max(median) FILTER (WHERE metric = 'fetch_us') AS fetch_us, max(median) FILTER (WHERE metric = 'window_us') AS window_us, max(median) FILTER (WHERE metric = 'stall_us') AS stall_us, max(median) FILTER (WHERE metric = 'step_us') AS step_us
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'plan' GROUP BY point_key
), b AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.traffic' AS traffic, a ->> '$.item' AS item, a ->> '$.unpriced' AS unpriced, max(median) FILTER (WHERE metric = 'usd_low') AS low, max(median) FILTER (WHERE metric = 'usd_high') AS high, max(median) FILTER (WHERE metric = 'value') AS rate
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'cost' GROUP BY point_key
), c AS (SELECT path, traffic, sum(low) AS low, sum(high) AS high, max(rate) AS rate, max(unpriced) AS unpriced FROM b GROUP BY path, traffic), f AS (
    SELECT DISTINCT axes_json ->> '$.path' AS path, axes_json ->> '$.fit' AS fit, axes_json ->> '$.over' AS beyond
    FROM v_summary WHERE run_id = :run AND experiment = 'size' AND axes_json ->> '$.what' = 'fit'
)
SELECT traffic, path, CASE fit WHEN 'fits' THEN 'yes' WHEN 'does not fit' THEN 'no: ' || beyond ELSE coalesce(fit, 'not stored') END AS fits, layer, iif(fetch_us >= 1000, printf('%,d', CAST(round(fetch_us) AS INTEGER)), printf('%.3g', fetch_us)) AS "fetch (µs)",
    printf('%,d', CAST(round(window_us) AS INTEGER)) AS "window (µs)", iif(stall_us > 0, printf('%,d', CAST(round(stall_us) AS INTEGER)), 'hidden') AS "wait (µs)",
    printf('%.4g', step_us / 1000) AS "step (ms)", iif(low IS NULL, NULL, printf('%.4g to %.4g', low, high) || iif(unpriced = 'nothing', '', ' without ' || unpriced)) AS "USD / M tokens"
FROM t LEFT JOIN c USING (path, traffic) LEFT JOIN f USING (path) ORDER BY traffic, path, CAST(layer AS INTEGER);
