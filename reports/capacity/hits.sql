-- title: F6. Cache size against hit rate
-- empty: this plan names no corpus: --corpus=NAME.
-- Overall rates, first uses included. lru is exact (stack distances); ways: 16 of them; admission: LRU that takes a row in at its second use.
WITH t AS (SELECT point_key, kind, a ->> '$.corpus' AS corpus, a ->> '$.policy' AS policy, a ->> '$.cache_bytes' AS cache_bytes, max(median) FILTER (WHERE metric = 'share') AS share, max(median) FILTER (WHERE metric = 'share_low') AS lo, max(median) FILTER (WHERE metric = 'share_high') AS hi, max(median) FILTER (WHERE metric = 'cold') AS cold
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'hits' GROUP BY point_key
)
SELECT point_key, corpus AS panel, policy || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, CASE policy WHEN 'lru' THEN 1 WHEN 'ways' THEN 2 ELSE 3 END AS no, CAST(cache_bytes AS REAL) AS cache_bytes,
    100 * share AS hit_percent, 100 * lo AS lo, 100 * hi AS hi, 100 * (1 - cold) AS ceiling
FROM t ORDER BY panel, no, cache_bytes;
