-- title: Training: memory of a rank against the range of its lookups
-- empty: this plan has no training side: --training.
WITH t AS (SELECT point_key, kind, a ->> '$.group' AS grp, max(median) FILTER (WHERE metric = 'bytes') AS bytes, max(median) FILTER (WHERE metric = 'fetch_us') AS fetch_us, max(median) FILTER (WHERE metric = 'step_us') AS back_us, max(median) FILTER (WHERE metric = 'term_us') AS sync_us, max(median) FILTER (WHERE metric = 'stall_us') AS exposed_us, max(median) FILTER (WHERE metric = 'share') AS far_share
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'training' GROUP BY point_key
)
SELECT point_key, 'engram size (' || kind || ')' AS series, CAST(grp AS REAL) AS ranks, bytes / 1e9 AS gb, fetch_us / 1e3 AS fetch_ms, back_us / 1e3 AS return_ms, sync_us / 1e3 AS replicas_ms, exposed_us / 1e3 AS exposed_ms, 100 * far_share AS far_percent FROM t ORDER BY ranks;
