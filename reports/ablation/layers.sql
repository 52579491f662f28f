-- title: Likeness of every two layers
-- empty: no two models of one sweep whose streams were compared.
-- Linear CKA of residual streams at entry of a layer with those of each layer of a pure MoE of another seed; means over seeds.
SELECT series, layer, reference, test ->> '$.mean' AS cka, test ->> '$.lo' AS lo, test ->> '$.hi' AS hi, test ->> '$.n' AS n, models, point_key
FROM (SELECT series, rho, layer, reference, paired_test(value) AS test, models, min(point_key) AS point_key FROM cka GROUP BY series, layer, reference)
ORDER BY rho = 1 DESC, layer, reference;
