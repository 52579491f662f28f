-- title: Loss against the size of the tables, backbone fixed
-- empty: no run over memory: engram train sweeps/train/memory.sweep
-- Each run less the pure MoE of its seed.
WITH base AS (
    SELECT study, seed, loss FROM v_train WHERE main AND rho = 1 AND memory = 0 AND iso = 'parameters' AND backbone = 'moe' AND NOT again
), runs AS (
    SELECT t.*, t.loss - b.loss AS gain,
        iif(fusion = 'input', 'over-encoding, ', 'Engram, ') || arm_label(json_remove(arm, '$.memory', '$.fusion', '$.rho')) || note AS series
    FROM v_train t JOIN base b USING (study, seed) WHERE t.main AND t.memory > 0
), means AS (
    SELECT series, avg(table_parameters) AS x, paired_test(gain) AS test, min(point_key) AS point_key FROM runs WHERE gain IS NOT NULL GROUP BY series, memory
)
SELECT 'seed' AS part, series, table_parameters AS x, gain AS y, NULL AS lo, NULL AS hi, CAST(seed AS INTEGER) AS n, collapsed, point_key
FROM runs WHERE gain IS NOT NULL
UNION ALL
SELECT 'mean', series, x, test ->> '$.mean', test ->> '$.lo', test ->> '$.hi', test ->> '$.n', NULL, point_key FROM means
UNION ALL
SELECT 'paper', iif(series = 'OverEncoding', 'over-encoding', series) || ' of the paper (published)', x * 1280,
    y - (SELECT y FROM published WHERE figure = 'fig3_right' AND series = 'PureMoE'), NULL, NULL, 1, NULL, ''
FROM published WHERE figure = 'fig3_right' AND series <> 'PureMoE' AND EXISTS (SELECT 1 FROM means)
ORDER BY 1, 2, 3;
