-- title: F19. What ablations say of a design: the paper's beside runs of this database
-- empty: no published numbers.
-- Loss above the best of its series. Own arms are means over the seeds that have all of a curve's arms, so that no arm is
-- of other seeds than its neighbours; `engram report ablation` has their intervals. Saturated gates are of synthetic states, of
-- the shape that most of them have.
WITH trained AS (
    SELECT t.*, r.sweep_name AS sweep, 'rho' AS panel, json_remove(arm, '$.rho') AS rest, rho AS place
    FROM v_train t JOIN blocks USING (block_id) JOIN runs r USING (run_id) WHERE main AND loss IS NOT NULL AND memory = 0
    UNION ALL
    SELECT t.*, r.sweep_name, 'layer', json_remove(arm, '$.engram_at'), engram_at
    FROM v_train t JOIN blocks USING (block_id) JOIN runs r USING (run_id) WHERE main AND loss IS NOT NULL AND (rho < 1 OR memory > 0) AND instr(engram_at, '+') = 0
), seeds AS (
    SELECT panel, rest, seed, count(DISTINCT place) AS arms FROM trained GROUP BY 1, 2, 3
), curves AS (
    SELECT panel, rest, max(arms) AS arms FROM seeds GROUP BY 1, 2 HAVING max(arms) >= 3
), best AS (
    SELECT panel, rest, row_number() OVER (PARTITION BY panel, rest ->> '$.rung', rest ->> '$.budget' ORDER BY arms DESC, rest) AS choice FROM curves
), own AS (
    SELECT min(point_key) AS point_key, CASE WHEN min(kind) = max(kind) THEN min(kind) ELSE 'partly imported' END AS kind, panel,
        printf('own %s, %g tokens per parameter', rung, budget) AS series, iif(panel = 'rho', 100 * avg(rho_actual), CAST(place AS REAL) + 1) AS x, avg(loss) AS y,
        count(*) AS runs, group_concat(DISTINCT sweep) AS sweeps
    FROM trained JOIN seeds USING (panel, rest, seed) JOIN curves c USING (panel, rest) JOIN best USING (panel, rest)
    WHERE seeds.arms = c.arms AND choice = 1 GROUP BY panel, rest, place
), gate AS (
    SELECT point_key, kind, axes_json ->> '$.formula' AS formula, CAST(axes_json ->> '$.alignment' AS REAL) AS x, value,
        json_remove(axes_json, '$.alignment', '$.formula', '$.variant') AS rest
    FROM points JOIN sample_values USING (point_key) JOIN samples USING (block_id, point_key, segment, pair)
    WHERE experiment = 'gate' AND metric = 'sat_05' AND traced = 0
), t AS (
    SELECT point_key, panel, series || iif(kind = 'measured', '', ' (' || kind || ')') AS series, x, y, runs, sweeps FROM own
    UNION ALL
    SELECT '', 'rho', replace(series, 'C=', '') || ' FLOP (published)', CAST(x AS REAL), y, NULL, NULL FROM published WHERE figure = 'fig3_left'
    UNION ALL
    SELECT '', 'layer', 'one module (published)', CAST(x AS REAL), y, NULL, NULL FROM published WHERE figure = 'fig5' AND series = 'single-layer sweep'
)
SELECT point_key, panel, series, x, y - min(y) OVER (PARTITION BY panel, series) AS y, runs, sweeps FROM t
UNION ALL
SELECT min(point_key), 'gate', 'gates, formula ' || formula || iif(kind = 'measured', '', ' (' || kind || ')'), x, 100 * avg(value), NULL, NULL
FROM gate WHERE rest = (SELECT rest FROM gate GROUP BY rest ORDER BY count(DISTINCT point_key) DESC, rest LIMIT 1)
GROUP BY kind, formula, x
ORDER BY 2 DESC, 3, 4;
