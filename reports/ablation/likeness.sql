-- title: Which layer of a pure MoE is a layer most like?
-- empty: no two models of one sweep whose streams were compared.
-- Soft alignment (mean of the most similar layers, weighted by linear CKA) and CKA with the same layer, of residual streams with those
-- of a pure MoE of another seed: of models with Engram, and of the pure MoE as the control, which the paper does not show. The paper
-- takes the 5 most similar of 30; here half of the layers at most, or every layer would align with the middle.
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY point_key, layer ORDER BY value DESC) AS place, count(*) OVER (PARTITION BY point_key, layer) AS layers FROM cka
), values_of AS (
    SELECT 'alignment' AS measure, series, models, seed, layer, sum(reference * value) / nullif(sum(value), 0) AS value, count(*) AS nearest, max(layers) AS layers, point_key
    FROM ranked WHERE place <= min(5, max(1, layers / 2)) GROUP BY point_key, layer
    UNION ALL
    SELECT 'same layer', series, models, seed, layer, value, NULL, NULL, point_key FROM cka WHERE reference = layer
), means AS (
    SELECT measure, series, models, layer, paired_test(value) AS test, max(nearest) AS nearest, max(layers) AS layers, min(point_key) AS point_key
    FROM values_of GROUP BY measure, series, layer
)
SELECT 'mean' AS part, measure, series, layer AS x, test ->> '$.mean' AS y, test ->> '$.lo' AS lo, test ->> '$.hi' AS hi, test ->> '$.n' AS n, nearest, layers, models, point_key
FROM means
UNION ALL
SELECT 'seed', measure, series, layer, value, NULL, NULL, seed, nearest, layers, models, point_key FROM values_of
UNION ALL
SELECT 'paper', 'alignment', series || ' (published)', x, y, NULL, NULL, 1, 5, 30, NULL, '' FROM published
WHERE figure IN ('fig4b_softalign', 'fig4c_softalign') AND EXISTS (SELECT 1 FROM means)
ORDER BY 1, 2, 3, 4;
