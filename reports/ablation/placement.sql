-- title: Loss against the layer of Engram
-- empty: no run over layers: engram train sweeps/train/placement.sweep
-- Single layers, from 0; each less the mean of all single layers of its seed. The paper's layers are counted from 1.
WITH runs AS (
    SELECT *, json_remove(arm, '$.engram_at') AS rest FROM v_train
    WHERE main AND loss IS NOT NULL AND (rho < 1 OR memory > 0) AND instr(engram_at, '+') = 0
), curves AS (
    SELECT rest, count(DISTINCT engram_at) AS layers FROM runs GROUP BY rest HAVING count(DISTINCT engram_at) >= 3
), seeds AS (
    SELECT rest, seed, avg(loss) AS mean FROM runs JOIN curves c USING (rest)
    GROUP BY rest, seed HAVING count(DISTINCT engram_at) = max(c.layers)
), named AS (
    SELECT r.*, printf('rho %g', r.rho) || CASE WHEN min(kind) OVER () = 'measured' AND max(kind) OVER () = 'measured' THEN '' WHEN max(kind) OVER () = min(kind) OVER () THEN ' (imported)' ELSE ' (partly imported)' END AS series, loss - s.mean AS difference
    FROM runs r JOIN seeds s USING (rest, seed)
)
SELECT 'seed' AS part, series, CAST(engram_at AS INTEGER) AS x, difference AS y, NULL AS lo, NULL AS hi, CAST(seed AS INTEGER) AS n, point_key
FROM named
UNION ALL
SELECT 'mean', series, x, test ->> '$.mean', test ->> '$.lo', test ->> '$.hi', test ->> '$.n', point_key
FROM (SELECT series, CAST(engram_at AS INTEGER) AS x, paired_test(difference) AS test, min(point_key) AS point_key FROM named GROUP BY 1, 2)
UNION ALL
SELECT 'paper', 'paper (published)', x - 1, y - (SELECT avg(y) FROM published WHERE figure = 'fig5' AND series = 'single-layer sweep'),
    NULL, NULL, 1, ''
FROM published WHERE figure = 'fig5' AND series = 'single-layer sweep' AND EXISTS (SELECT 1 FROM named)
ORDER BY 1, 2, 3;
