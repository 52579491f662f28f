-- title: F19. What ablations say of a design: the paper's beside runs of this database
-- empty: no published numbers.
-- Loss above the best of its series; own arms are means over seeds, `engram report ablation` has their intervals. Saturated gates
-- are of synthetic hidden states.
WITH runs AS (
    SELECT p.point_key, p.kind, json_remove(p.axes_json, '$.seed', '$.threads') AS arm, p.axes_json ->> '$.rho' AS rho, p.axes_json ->> '$.memory' AS memory,
        p.axes_json ->> '$.engram_at' AS engram_at, p.axes_json ->> '$.budget' AS budget,
        (SELECT avg(v.value) FROM sample_values v WHERE v.point_key = p.point_key AND v.metric = 'loss') AS loss,
        (SELECT avg(v.value) FROM sample_values v WHERE v.point_key = p.point_key AND v.metric = 'rho_actual') AS rho_actual
    FROM points p WHERE p.experiment = 'train'
), own AS (
    SELECT min(point_key) AS point_key, kind, 'rho' AS panel, printf('own, %g tokens per parameter', budget) AS series, 100 * avg(rho_actual) AS x, avg(loss) AS y
    FROM runs WHERE loss IS NOT NULL AND memory = 0
        AND json_remove(arm, '$.rho') IN (SELECT json_remove(arm, '$.rho') FROM runs WHERE loss IS NOT NULL AND memory = 0 GROUP BY 1 HAVING count(DISTINCT rho) >= 3)
    GROUP BY json_remove(arm, '$.rho'), rho
    UNION ALL
    SELECT min(point_key), kind, 'layer', printf('own, rho %g', rho), CAST(engram_at AS REAL) + 1, avg(loss)
    FROM runs WHERE loss IS NOT NULL AND (rho < 1 OR memory > 0) AND instr(engram_at, '+') = 0
        AND json_remove(arm, '$.engram_at') IN (SELECT json_remove(arm, '$.engram_at') FROM runs WHERE loss IS NOT NULL AND instr(engram_at, '+') = 0 GROUP BY 1 HAVING count(DISTINCT engram_at) >= 3)
    GROUP BY json_remove(arm, '$.engram_at'), engram_at
), t AS (
    SELECT point_key, panel, series || iif(kind = 'measured', '', ' (' || kind || ')') AS series, x, y FROM own
    UNION ALL
    SELECT '', 'rho', replace(series, 'C=', '') || ' FLOP (published)', CAST(x AS REAL), y FROM published WHERE figure = 'fig3_left'
    UNION ALL
    SELECT '', 'layer', 'one module (published)', CAST(x AS REAL), y FROM published WHERE figure = 'fig5' AND series = 'single-layer sweep'
)
SELECT point_key, panel, series, x, y - min(y) OVER (PARTITION BY panel, series) AS y FROM t
UNION ALL
SELECT min(p.point_key), 'gate', 'gates, formula ' || (p.axes_json ->> '$.formula') || iif(p.kind = 'measured', '', ' (' || p.kind || ')'), CAST(p.axes_json ->> '$.alignment' AS REAL), 100 * avg(v.value)
FROM points p JOIN sample_values v USING (point_key) WHERE p.experiment = 'gate' AND v.metric = 'sat_05' GROUP BY p.kind, p.axes_json ->> '$.formula', p.axes_json ->> '$.alignment'
ORDER BY 2 DESC, 3, 4;
