-- title: F15. Which input matters most? Fetch of the first module and cost, inputs moved by a quarter
-- empty: this run holds no sensitivities.
WITH t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.traffic' AS traffic, a ->> '$.input' AS input, a ->> '$.factor' AS factor, max(median) FILTER (WHERE metric = 'share') AS share, max(median) FILTER (WHERE metric = 'step_us') AS step_us, max(median) FILTER (WHERE metric = 'value') AS usd
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'sensitivity' GROUP BY point_key
), u AS (
    SELECT point_key, kind, path || ': fetch time' AS panel, traffic, input, factor, share, step_us FROM t
    UNION ALL
    SELECT point_key, kind, path || ': cost of a token', traffic, input, factor, usd, step_us FROM t WHERE usd IS NOT NULL
), r AS (SELECT panel, input, max(abs(share)) AS reach FROM u GROUP BY panel, input
), o AS (SELECT panel, input, row_number() OVER (PARTITION BY panel ORDER BY reach DESC, input) AS y FROM r WHERE reach > 1e-4)
SELECT point_key, panel, traffic, input, y, iif(factor < 1, 'a quarter less', 'a quarter more') || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, 100 * share AS change_percent, step_us
FROM u JOIN o USING (panel, input) WHERE y <= 5 ORDER BY panel DESC, y, series;
