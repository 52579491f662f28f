-- title: Loss against the share of sparse parameters that is experts
-- empty: no run over rho: engram train sweeps/train/rho.sweep
-- Differences to the pure MoE of the same seed and arm; the paper's to its own pure MoE.
WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND memory = 0 AND loss IS NOT NULL
), named AS (
    SELECT r.*, arm_label(rest) || r.note AS series, r.loss - b.loss AS gain
    FROM runs r JOIN (SELECT rest FROM runs GROUP BY rest HAVING count(DISTINCT rho) >= 3) USING (rest)
    JOIN runs b USING (rest, seed) WHERE b.rho = 1
), means AS (
    SELECT series, rho, avg(rho_actual) AS x, paired_test(gain) AS test, min(point_key) AS point_key, max(budget) AS budget
    FROM named GROUP BY series, rho
)
SELECT 'seed' AS part, series, budget, rho_actual AS x, gain AS y, NULL AS lo, NULL AS hi, CAST(seed AS INTEGER) AS seed, loss,
    collapsed, experts, NULL AS n, point_key
FROM named
UNION ALL
SELECT 'mean', series, budget, x, test ->> '$.mean', test ->> '$.lo', test ->> '$.hi', NULL, NULL, NULL, NULL, test ->> '$.n', point_key FROM means
UNION ALL
SELECT 'paper', series || ' FLOPs (published)', 0, x / 100, y - (SELECT y FROM published o WHERE o.figure = p.figure AND o.series = p.series
        AND o.x = 100), NULL, NULL, NULL, y, NULL, NULL, 1, ''
FROM published p WHERE figure = 'fig3_left' AND EXISTS (SELECT 1 FROM named)
ORDER BY 1, 3, 2, 4;
