-- title: F12. How many hosts?
-- empty: this plan asks for no hosts: --ranks and --host-devices.
-- All together: a path misses when the step of one of its kinds does.
WITH a AS (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size'
), t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.traffic' AS traffic, a ->> '$.target' AS target, max(median) FILTER (WHERE metric = 'hosts') AS hosts, max(median) FILTER (WHERE metric = 'step_us') AS step_us, max(median) FILTER (WHERE metric = 'value') AS slo_us
    FROM a WHERE a ->> '$.what' = 'hosts' GROUP BY point_key
), f AS (SELECT DISTINCT a ->> '$.path' AS path, a ->> '$.fit' AS fit FROM a WHERE a ->> '$.what' = 'fit'
), j AS ( -- plans of older programs have no verdict
    SELECT t.*, iif(fit IS NULL, 'fit not stored', nullif(fit, 'fits')) AS unfit FROM t LEFT JOIN f USING (path)
)
SELECT point_key, traffic || iif(slo_us IS NULL OR traffic = 'all together', '', printf(', mean step ≤ %g ms', slo_us / 1000)) AS panel,
    path || coalesce(', ' || unfit, '') || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, path, traffic, CAST(target AS REAL) AS target, hosts,
    coalesce(step_us > slo_us, 0) AS misses, unfit, step_us, slo_us
FROM j ORDER BY panel, series, target;
