-- title: Which row goes: share of look-ups that a row cache answers, by policy
-- empty: this run holds no points of the experiment cache with two policies at two capacities.
-- All orders together; of the points that differ in policy, corpus and capacity alone, the set with most policies.
WITH t AS (
    SELECT v.point_key, v.kind, v.axes_json AS a, v.metric, v.median, v.axes_json ->> '$.corpus' AS corpus, v.axes_json ->> '$.policy' AS policy,
        json_remove(v.axes_json, '$.policy', '$.corpus', '$.cache_rows') AS rest
    FROM v_summary v WHERE v.run_id = :run AND v.experiment = 'cache' AND v.outcome = 'measured' AND v.metric IN ('hit_rate', 'cold_misses')
), picked AS (
    SELECT t.*, CAST(a ->> '$.cache_rows' AS INTEGER) AS cache_rows FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest
        HAVING count(DISTINCT policy) > 1 AND count(DISTINCT a ->> '$.cache_rows') > 1 ORDER BY count(DISTINCT policy) DESC, count(*) DESC, rest LIMIT 1)
)
SELECT corpus AS panel, policy || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, cache_rows,
    100 * max(median) FILTER (WHERE metric = 'hit_rate') AS hit_percent, 100 - 100 * max(median) FILTER (WHERE metric = 'cold_misses') AS most_percent,
    a ->> '$.stream_tokens' AS stream_tokens, point_key
FROM picked p WHERE (SELECT count(DISTINCT q.policy) FROM picked q WHERE q.corpus = p.corpus) > 1
GROUP BY point_key
ORDER BY corpus, policy = 'lru' DESC, policy, cache_rows;
