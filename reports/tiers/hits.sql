-- title: Share of look-ups that a row cache answers, by order
-- empty: this run holds no points of the experiment cache at two capacities.
-- One panel per order; of the points that differ in corpus and capacity alone, the set with the most. Overall rates: all
-- look-ups count, the first of each row too.
WITH t AS (
    SELECT v.point_key, v.kind, v.axes_json AS a, v.metric, v.median,
        (SELECT c.median FROM v_summary c WHERE c.run_id = :run AND c.point_key = v.point_key AND c.metric = 'capacity_bytes') AS bytes,
        (SELECT c.median FROM v_summary c WHERE c.run_id = :run AND c.point_key = v.point_key AND c.metric = 'cold_misses') AS cold,
        json_remove(v.axes_json, '$.corpus', '$.cache_rows') AS rest
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'cache' AND v.outcome = 'measured' AND v.metric GLOB 'hit_[2-9]'
)
SELECT substr(metric, 5) || '-grams' AS panel, CAST(substr(metric, 5) AS INTEGER) AS gram, (a ->> '$.corpus') || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series,
    CAST(a ->> '$.cache_rows' AS INTEGER) AS cache_rows, bytes, 100 * median AS hit_percent, 100 * cold AS cold_percent, a ->> '$.policy' AS policy, a ->> '$.stream_tokens' AS stream_tokens, point_key
FROM t WHERE median IS NOT NULL AND rest = (SELECT rest FROM t GROUP BY rest ORDER BY count(*) DESC, max(a ->> '$.policy' = 'lru') DESC, rest LIMIT 1)
    AND (SELECT count(DISTINCT a ->> '$.cache_rows') FROM t) > 1
ORDER BY gram, series, cache_rows;
