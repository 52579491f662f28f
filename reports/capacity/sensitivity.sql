-- title: F15. Which input matters most? Fetch time of the first module, inputs moved by a quarter
-- empty: this run holds no sensitivities.
WITH t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.traffic' AS traffic, a ->> '$.input' AS input, a ->> '$.factor' AS factor, max(median) FILTER (WHERE metric = 'share') AS share, max(median) FILTER (WHERE metric = 'step_us') AS step_us
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'sensitivity' GROUP BY point_key
), r AS (SELECT path, input, max(abs(share)) AS reach FROM t GROUP BY path, input
), o AS (SELECT path, input, reach, row_number() OVER (PARTITION BY path ORDER BY reach DESC, input) AS y FROM r WHERE reach > 1e-4)
SELECT point_key, path AS panel, traffic, input, y, iif(factor < 1, 'a quarter less', 'a quarter more') || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, 100 * share AS change_percent, step_us
FROM t JOIN o USING (path, input) WHERE y <= 8 ORDER BY panel, y, series;
