-- title: Loss against the share of sparse parameters that is experts
-- empty: no run over rho: engram train sweeps/train/rho.sweep
-- Differences to the pure MoE of the same seed and arm; the paper's to its own pure MoE.
WITH runs AS (
    SELECT t.*, json_remove(t.arm, '$.rho') AS rest FROM v_train t WHERE main AND memory = 0 AND loss IS NOT NULL
), curves AS (
    SELECT rest, printf('%g tokens per parameter', max(budget)) || CASE WHEN max(kind) = 'measured' AND min(kind) = 'measured' THEN ''
        WHEN min(kind) = max(kind) THEN ' (imported)' ELSE ' (partly imported)' END AS series
    FROM runs GROUP BY rest HAVING count(DISTINCT rho) >= 3
), named AS (
    SELECT r.*, c.series, r.loss - b.loss AS gain
    FROM runs r JOIN curves c USING (rest) JOIN runs b ON b.rest = r.rest AND b.seed = r.seed AND b.rho = 1
), means AS (
    SELECT series, rho, avg(rho_actual) AS x, paired_test(gain) AS test, min(point_key) AS point_key, count(*) AS n
    FROM named GROUP BY series, rho
)
SELECT 'seed' AS part, series, rho_actual AS x, gain AS y, NULL AS lo, NULL AS hi, CAST(seed AS INTEGER) AS seed, loss,
    collapsed, experts, NULL AS n, point_key
FROM named
UNION ALL
SELECT 'mean', series, x, test ->> '$.mean', test ->> '$.lo', test ->> '$.hi', NULL, NULL, NULL, NULL, n, point_key FROM means
UNION ALL
SELECT 'paper', series || ' FLOPs (published)', x / 100, y - (SELECT y FROM published o WHERE o.figure = p.figure AND o.series = p.series
        AND o.x = 100), NULL, NULL, NULL, y, NULL, NULL, 1, ''
FROM published p WHERE figure = 'fig3_left' AND EXISTS (SELECT 1 FROM named)
ORDER BY 1, 2, 3;
