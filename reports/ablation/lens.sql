-- title: LogitLens: how far a layer's prediction is from the model's own
-- empty: no run of this database.
-- KL(final || layer) of residual streams at entry of a layer, collapsed and normalised as at the end.
WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND loss IS NOT NULL AND memory = 0 AND rows = 'hashed'
), best AS (
    SELECT rest FROM runs GROUP BY rest HAVING max(rho) = 1 AND min(rho) < 1 ORDER BY count(*) DESC LIMIT 1
), chosen AS (
    SELECT r.*, iif(rho = 1, 'pure MoE', printf('rho %.4g', rho)) || CASE WHEN min(kind) OVER () = 'measured' AND max(kind) OVER () = 'measured' THEN '' WHEN max(kind) OVER () = min(kind) OVER () THEN ' (imported)' ELSE ' (partly imported)' END AS series
    FROM runs r JOIN best USING (rest)
    WHERE rho = 1 OR rho = (SELECT rho FROM runs JOIN best USING (rest) WHERE rho < 1 ORDER BY abs(rho - 0.8) LIMIT 1)
), layers AS (
    SELECT c.series, s.step AS layer, s.value, c.seed, c.point_key FROM chosen c
    JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key AND s.name = 'lens'
)
SELECT 'mean' AS part, series, layer AS x, test ->> '$.mean' AS kl, coalesce(test ->> '$.lo', test ->> '$.mean') AS lo,
    coalesce(test ->> '$.hi', test ->> '$.mean') AS hi, test ->> '$.n' AS n, point_key
FROM (SELECT series, layer, paired_test(value) AS test, min(point_key) AS point_key FROM layers GROUP BY 1, 2)
UNION ALL
SELECT 'seed', series, layer, value, NULL, NULL, CAST(seed AS INTEGER), point_key FROM layers
UNION ALL
SELECT 'paper', series || ' (published)', x, y, NULL, NULL, 1, '' FROM published WHERE figure = 'fig4a_KL' AND EXISTS (SELECT 1 FROM layers)
ORDER BY 1, 2, 3;
