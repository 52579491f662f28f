-- title: Wall time of a call at decode shapes: median to 99th percentile
-- The fastest variant of each operation, backend and number of tokens. A sample of a call shorter than a millisecond is the mean
-- of `inner` calls, so its percentiles say how stretches of a millisecond differ, not single calls.
WITH t AS (
    SELECT v.point_key, v.experiment, v.backend, v.kind, CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens,
        v.axes_json ->> '$.variant' AS variant, json_remove(v.axes_json, '$.variant', '$.tokens') AS rest, v.median, l.block_id
    FROM v_summary v JOIN points p USING (point_key) JOIN run_points l ON l.run_id = v.run_id AND l.point_key = v.point_key
    WHERE v.run_id = :run AND v.outcome = 'measured' AND p.is_roof = 0 AND v.metric = 'wall_us'
        AND v.experiment IN ('hash', 'gather', 'project', 'gate', 'chain') AND v.axes_json ->> '$.tokens' <= 16
), picked AS (
    SELECT experiment, rest, row_number() OVER (PARTITION BY experiment
        ORDER BY count(DISTINCT tokens) DESC, count(*) DESC, rest) AS place
    FROM t GROUP BY experiment, rest
), best AS (
    SELECT t.*, row_number() OVER (PARTITION BY experiment, backend, kind, tokens ORDER BY median) AS fastest
    FROM t JOIN picked USING (experiment, rest) WHERE picked.place = 1
), sorted AS (
    SELECT b.*, a.value, s.inner_iterations AS inner,
        row_number() OVER (PARTITION BY b.point_key ORDER BY a.value) AS place, count(*) OVER (PARTITION BY b.point_key) AS n
    FROM best b
    JOIN sample_values a ON a.block_id = b.block_id AND a.point_key = b.point_key AND a.metric = 'wall_us'
    JOIN samples s ON s.block_id = b.block_id AND s.point_key = b.point_key AND s.segment = a.segment AND s.pair = a.pair
    WHERE b.fastest = 1 AND s.traced = 0
)
SELECT experiment || iif(backend = 'cpu', '', ', ' || backend) || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, experiment, tokens, variant, n,
    max(inner) AS inner, min(value) FILTER (WHERE place >= 0.5 * n) AS p50, min(value) FILTER (WHERE place >= 0.9 * n) AS p90,
    min(value) FILTER (WHERE place >= 0.99 * n) AS p99, point_key
FROM sorted
GROUP BY point_key
ORDER BY CASE experiment WHEN 'hash' THEN 1 WHEN 'gather' THEN 2 WHEN 'project' THEN 3 WHEN 'gate' THEN 4 ELSE 5 END, backend, kind, tokens;
