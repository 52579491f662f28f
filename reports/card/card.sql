-- title: Bandwidth, overlap, budget and saturation
-- empty: this run holds no points of gather, prefetch, split or gate (sweeps/card.sweep has them).
-- One panel each. Of the points of an experiment that differ in the panel's axes alone, the set with the most is taken (of prefetch
-- each backend's own: a device computes wider layers); of several kernel variants of a backend the fastest.
WITH here AS (
    SELECT v.experiment, v.metric, v.backend, v.point_key, v.axes_json AS a, v.median, coalesce(v.ci_lo, v.median) AS lo,
        coalesce(v.ci_hi, v.median) AS hi, iif(v.backend = 'cpu', '', ', ' || v.backend) ||
            CASE v.kind WHEN 'measured' THEN '' ELSE ' (' || v.kind || ')' END AS suffix
    FROM v_summary v JOIN points p USING (point_key)
    WHERE v.run_id = :run AND v.outcome = 'measured' AND p.is_roof = 0 AND (v.experiment, v.metric) IN (VALUES
        ('gather', 'gather_gbps'), ('prefetch', 'hidden'), ('split', 'moe_us'), ('split', 'chain_us'),
        ('split', 'gather_us'), ('gate', 'sat_05'))
), gather AS (
    SELECT *, a ->> '$.heads' AS heads, CAST(a ->> '$.rows' AS INTEGER) AS x,
        json_remove(a, '$.heads', '$.rows', '$.variant') AS rest
    FROM here WHERE experiment = 'gather'
), fastest AS (
    SELECT *, row_number() OVER (PARTITION BY heads, x, suffix ORDER BY median DESC) AS place
    FROM gather WHERE rest = (SELECT rest FROM gather GROUP BY rest ORDER BY count(*) DESC, rest LIMIT 1)
), prefetch AS (
    SELECT *, CAST(a ->> '$.placement' AS INTEGER) AS x,
        json_remove(a, '$.placement', '$.store', '$.residency', '$.window', '$.layers', '$.table_at') AS rest
    FROM here WHERE experiment = 'prefetch'
), split AS (
    SELECT *, CAST(a ->> '$.rho' AS REAL) AS x, json_remove(a, '$.rho') AS rest FROM here WHERE experiment = 'split'
), gate AS (
    SELECT *, CAST(a ->> '$.alignment' AS REAL) AS x, a ->> '$.formula' AS formula,
        json_remove(a, '$.alignment', '$.formula', '$.variant') AS rest
    FROM here WHERE experiment = 'gate'
), saturation AS (
    SELECT *, row_number() OVER (PARTITION BY formula, x, suffix ORDER BY a ->> '$.variant') AS place
    FROM gate WHERE rest = (SELECT rest FROM gate GROUP BY rest ORDER BY count(*) DESC, rest LIMIT 1)
)
SELECT 'bandwidth' AS panel, 1 AS panel_no, printf('K = %d', heads) || suffix AS series, CAST(heads AS INTEGER) AS series_no, x,
    median AS y, lo, hi, a ->> '$.hold' AS held, a ->> '$.tokens' AS tokens, 0 AS emulated, a ->> '$.variant' AS variant, point_key
FROM fastest WHERE place = 1
UNION ALL
SELECT 'overlap', 2, CASE WHEN backend <> 'cpu' THEN iif(a ->> '$.table_at' = 'local', 'device memory', (a ->> '$.table_at') || ' host memory')
            WHEN a ->> '$.store' = 'memory' THEN 'memory' ELSE (a ->> '$.store') || ' ' || (a ->> '$.residency') END ||
        iif(a ->> '$.window' = 'backbone', ', computed', ', ' || substr(a ->> '$.window', 7) || ' µs a layer (emulated)') || suffix,
    20 * (backend <> 'cpu') + iif(a ->> '$.window' = 'backbone', 0, 10) + iif(a ->> '$.residency' = 'cold', 2, 0) + (a ->> '$.store' <> 'memory'),
    x, median, lo, hi, NULL, a ->> '$.tokens', a ->> '$.window' <> 'backbone', NULL, point_key
FROM prefetch p WHERE rest = (SELECT rest FROM prefetch q WHERE q.backend = p.backend GROUP BY rest ORDER BY count(*) DESC, rest LIMIT 1)
UNION ALL
SELECT 'budget', 3, CASE metric WHEN 'moe_us' THEN 'MoE of a layer' WHEN 'chain_us' THEN 'Engram chain of a module'
        ELSE 'its gather' END || suffix,
    CASE metric WHEN 'moe_us' THEN 1 WHEN 'chain_us' THEN 2 ELSE 3 END, x, median, lo, hi, NULL, a ->> '$.tokens', 0, NULL, point_key
FROM split WHERE rest = (SELECT rest FROM split GROUP BY rest ORDER BY count(DISTINCT x) DESC, rest LIMIT 1)
UNION ALL
SELECT 'saturation', 4, 'formula ' || formula || suffix, CASE formula WHEN 'copysign' THEN 1 WHEN 'sign' THEN 2 ELSE 3 END,
    x, 100 * median, 100 * lo, 100 * hi, NULL, a ->> '$.tokens', 0, a ->> '$.variant', point_key
FROM saturation WHERE place = 1
ORDER BY panel_no, series_no, series, x;
