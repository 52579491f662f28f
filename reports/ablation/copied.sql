-- title: The curve for tokens that could be copied from the context, and for the others
-- empty: no run over rho: engram train sweeps/train/rho.sweep
-- Loss less that of the pure MoE of the same seed and arm, apart for tokens that stood behind the same token within 256 before, in
-- the same document (copied), and the others: a model that has learnt to copy from its context gains on the first alone.
WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND memory = 0 AND rows = 'hashed' AND loss IS NOT NULL
), named AS (
    SELECT iif(s.step, 'copied', 'not copied') AS what, arm_label(rest) || r.note AS series, r.rho, r.rho_actual, r.seed, r.budget,
        s.value - o.value AS gain, o.value AS moe, r.point_key
    FROM runs r JOIN (SELECT rest FROM runs GROUP BY rest HAVING count(DISTINCT rho) >= 3) USING (rest)
    JOIN runs b USING (rest, seed)
    JOIN series s ON s.block_id = r.block_id AND s.point_key = r.point_key AND s.name = 'loss_copied'
    JOIN series o ON o.block_id = b.block_id AND o.point_key = b.point_key AND o.name = s.name AND o.step = s.step
    WHERE b.rho = 1
), means AS (
    SELECT what, series, rho, budget, avg(rho_actual) AS x, paired_test(gain) AS test, avg(moe) AS moe, min(point_key) AS point_key
    FROM named GROUP BY what, series, rho
)
SELECT 'seed' AS part, what, series, budget, rho_actual AS x, gain AS y, NULL AS lo, NULL AS hi, CAST(seed AS INTEGER) AS n, moe, point_key
FROM named
UNION ALL
SELECT 'mean', what, series, budget, x, test ->> '$.mean', test ->> '$.lo', test ->> '$.hi', test ->> '$.n', moe, point_key FROM means
ORDER BY part, what DESC, budget, series, x;
