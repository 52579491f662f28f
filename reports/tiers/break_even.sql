-- title: Break-even: time to fetch the rows of one layer, by store
-- empty: this run holds no points of the experiment tier at two numbers of tokens.
-- Stores whose line lies below a window's line are hidden by it. Windows are the median from "token ids known" to "rows
-- needed" of the decode steps of this run with one module, one per placement layer and window.
WITH t AS (
    SELECT v.point_key, v.kind, v.axes_json AS a, CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens, v.median AS us,
        coalesce(v.ci_lo, v.median) AS lo, coalesce(v.ci_hi, v.median) AS hi,
        json_remove(v.axes_json, '$.tokens', '$.store', '$.residency') AS rest
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'tier' AND v.metric = 'wall_us' AND v.outcome = 'measured'
), shown AS (
    SELECT * FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest ORDER BY count(*) DESC, rest LIMIT 1)
        AND (SELECT count(DISTINCT tokens) FROM t) > 1
), windows AS (
    SELECT CAST(axes_json ->> '$.placement' AS INTEGER) AS layer, axes_json ->> '$.window' AS kind, avg(median) AS us
    FROM v_summary
    WHERE run_id = :run AND experiment = 'prefetch' AND metric = 'window_us' AND outcome = 'measured' AND axes_json ->> '$.placement' > 0
        AND axes_json ->> '$.window' <> 'backbone' AND coalesce(axes_json ->> '$.phase', 'decode') = 'decode'
        AND coalesce(axes_json ->> '$.modules', 1) = 1 AND coalesce(axes_json ->> '$.vision', 'off') = 'off'
    GROUP BY 1, 2
)
SELECT (a ->> '$.store') || iif(a ->> '$.store' = 'memory', '', ' ' || (a ->> '$.residency'))
        || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series,
    a ->> '$.store' AS store, iif(a ->> '$.store' = 'memory', 0, iif(a ->> '$.residency' = 'warm', 1, 2)) AS place, tokens, us, lo, hi, NULL AS layer, NULL AS pace, a ->> '$.row_format' AS row_format, point_key
FROM shown
UNION ALL
SELECT 'window', NULL, 9, (SELECT max(tokens) FROM shown), us, us, us, layer, substr(kind, 7), NULL, NULL FROM windows
WHERE EXISTS (SELECT 1 FROM shown) AND kind = (SELECT min(kind) FROM windows) AND layer IN (1, 4, 14, 39)
ORDER BY place, series, tokens, layer;
