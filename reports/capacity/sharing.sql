-- title: F9. Traffic when ranks share the tables
-- empty: this run holds no sharing schemes.
WITH t AS (SELECT point_key, kind, a ->> '$.scheme' AS scheme, a ->> '$.ranks' AS ranks, a ->> '$.scales' AS scales, max(median) FILTER (WHERE metric = 'bytes') AS bytes, max(median) FILTER (WHERE metric = 'value') AS largest_over_mean, max(median) FILTER (WHERE metric = 'term_us') AS us
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'sharding' GROUP BY point_key
)
SELECT point_key, scheme || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, CAST(ranks AS REAL) AS ranks, bytes / 1e6 AS mb, largest_over_mean, us, scales FROM t ORDER BY scheme, ranks;
