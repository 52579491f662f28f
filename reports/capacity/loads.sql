-- title: F13. How much link, adapter or drive does a host need?
-- empty: this plan asks for no hosts (--ranks and --host-devices), or was stored before they were counted.
-- The first kind of traffic. Links are counted that a full host's readers have, one each; of all else a host has one.
WITH t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.traffic' AS traffic, a ->> '$.tier' AS tier, a ->> '$.host_rate' AS host_rate, max(median) FILTER (WHERE metric = 'gbps') AS gbps, max(median) FILTER (WHERE metric = 'requests_per_s') AS rps, max(median) FILTER (WHERE metric = 'units') AS units, max(median) FILTER (WHERE metric = 'value') AS has
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'load' GROUP BY point_key HAVING has IS NOT NULL
)
SELECT point_key, tier || ' of ' || path || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, tier, path, traffic, CAST(host_rate AS REAL) AS host_rate, gbps, rps / 1e6 AS m_per_s, units, has, 100 * units / has AS used_percent FROM t
ORDER BY path, tier, CAST(host_rate AS REAL);
