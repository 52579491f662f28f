-- Held-out loss by class of the token predicted (family class) and by frequency of its context (decile), less that of the pure MoE
-- of the same seed: of the arm with Engram that has most seeds, and of the same model with Engram's output at zero.
CREATE TEMP VIEW loss_parts AS WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND loss IS NOT NULL AND memory = 0
), best AS (
    SELECT arm, rest, rho FROM runs WHERE suppressed_loss IS NOT NULL AND rows = 'hashed' GROUP BY arm
    ORDER BY count(*) DESC, abs(rho - 0.8), avg(loss) LIMIT 1
), chosen AS (
    SELECT r.*, b.block_id AS moe_block, b.point_key AS moe_key FROM runs r JOIN best USING (arm, rest)
    JOIN runs b ON b.rest = r.rest AND b.rho = 1 AND b.seed = r.seed
), models AS (
    SELECT 'loss' AS prefix, 'Engram' AS model UNION ALL SELECT 'suppressed', 'Engram silenced'
), named AS (
    SELECT c.*, m.model, substr(s.name, length(m.prefix) + 1) AS name, s.step, s.value FROM chosen c CROSS JOIN models m
    JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key AND s.name GLOB m.prefix || '_[cd]*'
)
SELECT iif(n.name = '_decile', 'decile', 'class') AS family, model || CASE WHEN min(kind) OVER () = 'measured' AND max(kind) OVER () = 'measured' THEN ''
        ELSE ' (imported)' END AS series, rho, seed, n.point_key, n.block_id, n.value - o.value AS difference, o.value AS moe,
    CASE n.name WHEN '_decile' THEN n.step WHEN '_copied' THEN iif(n.step, 'copied', 'not copied') ELSE substr(n.name, instr(n.name, ':') + 1) END AS what
FROM named n JOIN series o ON o.block_id = n.moe_block AND o.point_key = n.moe_key AND o.step = n.step AND o.name = 'loss' || n.name;
-- The same as means over seeds with their intervals, and each seed (n).
CREATE TEMP VIEW loss_parts_drawn AS WITH means AS (
    SELECT family, series, what, max(rho) AS rho, paired_test(difference) AS test, avg(moe) AS moe, min(point_key) AS point_key, min(block_id) AS block_id
    FROM loss_parts GROUP BY 1, 2, 3
)
SELECT family, 'mean' AS part, series, what, test ->> '$.mean' AS difference, test ->> '$.lo' AS lo, test ->> '$.hi' AS hi, test ->> '$.n' AS n, moe, rho,
    (SELECT k.value FROM series k WHERE k.block_id = m.block_id AND k.point_key = m.point_key AND k.name = 'count_decile' AND k.step = m.what) AS count_in_training, point_key
FROM means m
UNION ALL
SELECT family, 'seed', series, what, difference, NULL, NULL, CAST(seed AS INTEGER), moe, rho, NULL, point_key FROM loss_parts;
