-- title: F8. What deduplication saves
-- empty: this plan names no corpus: --corpus=NAME.
WITH t AS (SELECT point_key, kind, a ->> '$.corpus' AS corpus, a ->> '$.batch' AS batch, a ->> '$.tokens' AS tokens, max(median) FILTER (WHERE metric = 'share') AS share
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'unique' GROUP BY point_key
)
SELECT point_key, batch AS panel, corpus || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, CAST(tokens AS REAL) AS tokens, share FROM t ORDER BY panel DESC, series, tokens;
