-- title: LogitLens: how far a layer's prediction is from the model's own
-- empty: no run of this database.
-- KL(final || layer) of residual streams at entry of a layer, collapsed and normalised as at the end.
WITH layers AS (
    SELECT model || note AS series, models, s.step AS layer, s.value, seed, c.point_key FROM looked_inside c
    JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key AND s.name = 'lens'
), means AS (
    SELECT series, models, layer, paired_test(value) AS test, min(point_key) AS point_key FROM layers GROUP BY series, layer
)
SELECT 'mean' AS part, series, layer AS x, test ->> '$.mean' AS kl, test ->> '$.lo' AS lo, test ->> '$.hi' AS hi, test ->> '$.n' AS n, models, point_key FROM means
UNION ALL
SELECT 'seed', series, layer, value, NULL, NULL, CAST(seed AS INTEGER), models, point_key FROM layers
UNION ALL
SELECT 'paper', series || ' (published)', x, y, NULL, NULL, 1, NULL, '' FROM published WHERE figure = 'fig4a_KL' AND EXISTS (SELECT 1 FROM layers)
ORDER BY 1, 2, 3;
