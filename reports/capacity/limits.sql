-- title: F5. Which limit binds?
-- empty: this run holds no terms of a gather.
WITH t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.traffic' AS traffic, a ->> '$.tier' AS tier, a ->> '$.limit' AS "limit", max(median) FILTER (WHERE metric = 'term_us') AS us,
        coalesce(max(median) FILTER (WHERE metric = 'value'), 0) AS binds
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'term' GROUP BY point_key
)
SELECT point_key, traffic || ' · ' || path || ' · ' || tier AS config, dense_rank() OVER (ORDER BY traffic, path, tier) AS y, path, traffic, tier, "limit" || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, us, binds
FROM t ORDER BY "limit", y;
