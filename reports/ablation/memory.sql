-- title: Loss against the size of the tables, backbone fixed
-- empty: no run over memory: engram train sweeps/train/memory.sweep
WITH base AS (
    SELECT rung, text, budget, seed, loss FROM v_train WHERE main AND rho = 1 AND memory = 0 AND iso = 'parameters'
        AND backbone = 'moe' AND loss IS NOT NULL
), runs AS (
    SELECT t.*, t.loss - b.loss AS gain, iif(fusion = 'input', 'over-encoding', 'Engram') || CASE WHEN min(kind) OVER () = 'measured' AND max(kind) OVER () = 'measured' THEN '' WHEN max(kind) OVER () = min(kind) OVER () THEN ' (imported)' ELSE ' (partly imported)' END AS series
    FROM v_train t JOIN base b USING (rung, text, budget, seed) WHERE t.main AND t.memory > 0 AND t.loss IS NOT NULL
)
SELECT 'seed' AS part, series, table_parameters AS x, gain AS y, NULL AS lo, NULL AS hi, CAST(seed AS INTEGER) AS n, point_key FROM runs
UNION ALL
SELECT 'mean', series, x, test ->> '$.mean', test ->> '$.lo', test ->> '$.hi', test ->> '$.n', point_key
FROM (SELECT series, avg(table_parameters) AS x, paired_test(gain) AS test, min(point_key) AS point_key FROM runs GROUP BY series, memory)
UNION ALL
SELECT 'paper', iif(series = 'OverEncoding', 'over-encoding', series) || ' of the paper (published)', x * 1280,
    y - (SELECT y FROM published WHERE figure = 'fig3_right' AND series = 'PureMoE'), NULL, NULL, 1, ''
FROM published WHERE figure = 'fig3_right' AND series <> 'PureMoE' AND EXISTS (SELECT 1 FROM runs)
ORDER BY 1, 2, 3;
