-- title: Latency of a fetch: median to 99th percentile
-- empty: this run holds no points of the experiment tier.
-- A warm sample is the mean of several calls where one is short, a cold one is one call.
WITH t AS (
    SELECT v.point_key, v.kind, v.axes_json AS a, CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens, l.block_id,
        json_remove(v.axes_json, '$.tokens', '$.store', '$.residency') AS rest
    FROM v_summary v JOIN run_points l ON l.run_id = v.run_id AND l.point_key = v.point_key
    WHERE v.run_id = :run AND v.experiment = 'tier' AND v.metric = 'wall_us' AND v.outcome = 'measured'
), picked AS (
    SELECT * FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest ORDER BY count(*) DESC, rest LIMIT 1)
), sorted AS (
    SELECT b.*, x.value, s.inner_iterations AS inner, row_number() OVER (PARTITION BY b.point_key ORDER BY x.value) AS place,
        count(*) OVER (PARTITION BY b.point_key) AS n
    FROM picked b
    JOIN sample_values x ON x.block_id = b.block_id AND x.point_key = b.point_key AND x.metric = 'wall_us'
    JOIN samples s ON s.block_id = b.block_id AND s.point_key = b.point_key AND s.segment = x.segment AND s.pair = x.pair
    WHERE s.traced = 0
)
SELECT (a ->> '$.store') || iif(a ->> '$.store' = 'memory', '', ' ' || (a ->> '$.residency'))
        || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series,
    a ->> '$.store' AS store, iif(a ->> '$.store' = 'memory', 0, iif(a ->> '$.residency' = 'warm', 1, 2)) AS place, tokens, n, max(inner) AS inner,
    min(value) FILTER (WHERE sorted.place >= 0.5 * n) AS p50, min(value) FILTER (WHERE sorted.place >= 0.9 * n) AS p90,
    min(value) FILTER (WHERE sorted.place >= 0.99 * n) AS p99, point_key
FROM sorted
GROUP BY point_key
ORDER BY place, series, tokens;
