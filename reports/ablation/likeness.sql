-- title: Which layer of a pure MoE is a layer most like?
-- empty: no two models of one sweep whose streams were compared.
-- Soft alignment (mean of the 5 most similar layers, weighted by linear CKA) of residual streams with those of a pure MoE of
-- another seed: of models with Engram, and of the pure MoE as the control, which the paper does not show.
WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND loss IS NOT NULL AND memory = 0 AND rows = 'hashed'
), best AS (
    SELECT rest FROM runs GROUP BY rest HAVING max(rho) = 1 AND min(rho) < 1 ORDER BY count(*) DESC LIMIT 1
), chosen AS (
    SELECT r.*, iif(rho = 1, 'pure MoE (control)', printf('rho %.4g', rho))
        || CASE WHEN min(kind) OVER () = 'measured' AND max(kind) OVER () = 'measured' THEN '' ELSE ' (imported)' END AS series
    FROM runs r JOIN best USING (rest)
    WHERE rho = 1 OR rho = (SELECT rho FROM runs JOIN best USING (rest) WHERE rho < 1 ORDER BY abs(rho - 0.8) LIMIT 1)
), layers AS (
    SELECT c.series, s.step AS layer, s.value, c.seed, c.point_key,
        (SELECT k.value FROM series k WHERE k.block_id = c.block_id AND k.point_key = c.point_key AND k.name = 'cka:' || s.step AND k.step = s.step) AS same
    FROM chosen c JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key AND s.name = 'alignment'
)
SELECT 'mean' AS part, series, layer AS x, test ->> '$.mean' AS y, coalesce(test ->> '$.lo', test ->> '$.mean') AS lo,
    coalesce(test ->> '$.hi', test ->> '$.mean') AS hi, test ->> '$.n' AS n, same, point_key
FROM (SELECT series, layer, paired_test(value) AS test, avg(same) AS same, min(point_key) AS point_key FROM layers GROUP BY 1, 2)
UNION ALL
SELECT 'seed', series, layer, value, NULL, NULL, CAST(seed AS INTEGER), same, point_key FROM layers
UNION ALL
SELECT 'paper', series || ' (published)', x, y, NULL, NULL, 1, NULL, '' FROM published
WHERE figure IN ('fig4b_softalign', 'fig4c_softalign') AND EXISTS (SELECT 1 FROM layers)
ORDER BY 1, 2, 3;
