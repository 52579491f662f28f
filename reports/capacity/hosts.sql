-- title: F12. How many hosts?
-- empty: this plan asks for no hosts: --ranks and --host-devices.
WITH t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.traffic' AS traffic, a ->> '$.target' AS target, max(median) FILTER (WHERE metric = 'hosts') AS hosts, max(median) FILTER (WHERE metric = 'step_us') AS step_us, max(median) FILTER (WHERE metric = 'value') AS slo_us
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'hosts' GROUP BY point_key
)
SELECT point_key, traffic || iif(slo_us IS NULL, '', printf(', mean step ≤ %g ms', slo_us / 1000)) AS panel, path || iif(step_us > slo_us, ', misses it', '') || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, path, traffic, CAST(target AS REAL) AS target, hosts, step_us, slo_us FROM t
ORDER BY panel, series, target;
