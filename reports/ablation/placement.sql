-- title: Loss against the layers of Engram
-- empty: no run over layers: engram train sweeps/train/placement.sweep
-- Single layers and pairs, from 0; each less the mean of all single layers of its seed. The paper's layers are counted from 1.
WITH runs AS (
    SELECT *, json_remove(arm, '$.engram_at') AS rest, instr(engram_at, '+') = 0 AS single FROM v_train
    WHERE main AND loss IS NOT NULL AND (rho < 1 OR memory > 0) AND fusion <> 'input'
), curves AS (
    SELECT rest, count(DISTINCT engram_at) AS layers FROM runs WHERE single GROUP BY rest HAVING count(DISTINCT engram_at) >= 3
), seeds AS (
    SELECT rest, seed, avg(loss) AS mean FROM runs JOIN curves c USING (rest) WHERE single
    GROUP BY rest, seed HAVING count(DISTINCT engram_at) = max(c.layers)
), named AS (
    SELECT r.*, printf('rho %g, %s', r.rho, arm_label(json_remove(rest, '$.rho'))) || r.note AS series, loss - s.mean AS difference,
        dense_rank() OVER (ORDER BY NOT single, engram_at) AS place
    FROM runs r JOIN seeds s USING (rest, seed)
), means AS (
    SELECT series, engram_at, place, paired_test(difference) AS test, min(point_key) AS point_key FROM named GROUP BY series, engram_at
), paper AS (
    SELECT x, y - (SELECT avg(y) FROM published WHERE figure = 'fig5' AND series = 'single-layer sweep') AS y, series
    FROM published WHERE figure = 'fig5' AND (series = 'single-layer sweep' OR x = 'reference L2+L6') AND EXISTS (SELECT 1 FROM named)
)
SELECT 'seed' AS part, series, engram_at AS layers, place AS x, difference AS y, NULL AS lo, NULL AS hi, CAST(seed AS INTEGER) AS n, collapsed, point_key
FROM named
UNION ALL
SELECT 'mean', series, engram_at, place, test ->> '$.mean', test ->> '$.lo', test ->> '$.hi', test ->> '$.n', NULL, point_key FROM means
UNION ALL
SELECT 'paper', 'one module (published)', x - 1, x - 1, y, NULL, NULL, 1, NULL, '' FROM paper WHERE series = 'single-layer sweep'
UNION ALL
SELECT 'pair', 'two modules, layers 1 and 5 (published)', '1+5', NULL, y, NULL, NULL, 1, NULL, '' FROM paper WHERE series <> 'single-layer sweep'
ORDER BY 1, 2, 4;
