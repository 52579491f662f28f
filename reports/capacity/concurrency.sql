-- title: F7. Hit rate against concurrency and stream length
-- empty: this plan names no corpus: --corpus=NAME.
-- LRU of one size. Streams: parts of the text read side by side. Length: the text's first tokens.
WITH t AS (SELECT point_key, kind, a ->> '$.corpus' AS corpus, a ->> '$.streams' AS streams, a ->> '$.stream_tokens' AS stream_tokens, a ->> '$.cache_bytes' AS cache_bytes, max(median) FILTER (WHERE metric = 'share') AS share, max(median) FILTER (WHERE metric = 'cold') AS cold
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'streams' GROUP BY point_key
), l AS (SELECT point_key, kind, a ->> '$.corpus' AS corpus, a ->> '$.streams' AS streams, a ->> '$.stream_tokens' AS stream_tokens, a ->> '$.cache_bytes' AS cache_bytes, max(median) FILTER (WHERE metric = 'share') AS share, max(median) FILTER (WHERE metric = 'cold') AS cold
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'length' GROUP BY point_key
), h AS (SELECT point_key, kind, a ->> '$.corpus' AS corpus, max(median) FILTER (WHERE metric = 'value') AS beta, max(median) FILTER (WHERE metric = 'share') AS touched
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'heaps' GROUP BY point_key
)
SELECT t.point_key, 'streams' AS panel, corpus || ' (' || t.kind || ')' AS series, CAST(streams AS REAL) AS x, 100 * share AS hit_percent, cache_bytes, beta, 100 * touched AS touched_percent FROM t LEFT JOIN h USING (corpus)
UNION ALL
SELECT l.point_key, 'length', corpus || ' (' || l.kind || ')', CAST(stream_tokens AS REAL), 100 * share, cache_bytes, beta, 100 * touched AS touched_percent FROM l LEFT JOIN h USING (corpus)
ORDER BY 2, 3, 4;
