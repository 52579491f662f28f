-- title: F10. How many requests must be under way?
-- empty: no tier of this plan has a latency and a rate.
WITH t AS (SELECT point_key, kind, a ->> '$.tier' AS tier, a ->> '$.outstanding' AS outstanding, max(median) FILTER (WHERE metric = 'rate_per_s') AS rate, max(median) FILTER (WHERE metric = 'value') AS enough
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'knee' GROUP BY point_key
)
SELECT t.point_key, tier || ' (' || t.kind || ')' AS series, CAST(outstanding AS REAL) AS outstanding, rate / 1e6 AS m_per_s, enough, 0.9 * max(rate) OVER (PARTITION BY tier) / 1e6 AS enough_m_per_s, p.provenance LIKE '%unknown%' AS hard
FROM t JOIN points p USING (point_key) ORDER BY tier, outstanding;
