-- title: F2. Rows and bytes of a step
-- empty: this run holds no counts of rows.
WITH t AS (SELECT point_key, kind, a ->> '$.design' AS design, a ->> '$.streams' AS streams, max(median) FILTER (WHERE metric = 'rows') AS rows, max(median) FILTER (WHERE metric = 'bytes') AS bytes
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'rows' GROUP BY point_key
)
SELECT point_key, design || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, CAST(streams AS REAL) AS streams, rows, bytes / 1e6 AS mb FROM t
ORDER BY CASE design WHEN 'as the preset' THEN 0 ELSE 1 END, design, streams;
