-- title: F4. Is it hidden? Wait for rows over the step with it, by batch and placement
-- empty: this run holds no placements.
-- One module alone, neither cache nor deduplication, layer time as the first traffic gives it.
WITH t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.tokens' AS tokens, a ->> '$.placement' AS placement, max(median) FILTER (WHERE metric = 'share') AS stall_share, max(median) FILTER (WHERE metric = 'stall_us') AS stall_us, max(median) FILTER (WHERE metric = 'window_us') AS window_us, max(median) FILTER (WHERE metric = 'step_us') AS step_us
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'hidden' GROUP BY point_key
)
SELECT point_key, path || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS panel, CAST(tokens AS REAL) AS tokens, CAST(placement AS INTEGER) AS placement, dense_rank() OVER (ORDER BY CAST(placement AS INTEGER)) AS y,
    stall_share, stall_us, window_us, step_us
FROM t ORDER BY panel, tokens, y;
