-- The kind of models that most runs are: figures of one kind show it, and say so.
CREATE TEMP VIEW most_runs AS SELECT study FROM v_train WHERE main AND NOT again GROUP BY study ORDER BY count(*) DESC, study LIMIT 1;
-- Held-out loss by class of the token predicted (family class) and by frequency of its context (decile), less that of the pure MoE
-- of the same seed: of the arm with Engram that has most seeds, and of the same model with Engram's output at zero.
CREATE TEMP VIEW loss_parts AS WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND loss IS NOT NULL AND memory = 0
        AND study = (SELECT study FROM most_runs)
), best AS (
    SELECT arm, rest, rho FROM runs r WHERE suppressed_loss IS NOT NULL AND rows = 'hashed'
        AND EXISTS (SELECT 1 FROM runs b WHERE b.rest = r.rest AND b.rho = 1 AND b.seed = r.seed) GROUP BY arm
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
SELECT iif(n.name = '_decile', 'decile', 'class') AS family, model || note AS series, arm_label(arm) AS models, rho, seed, n.point_key, n.block_id, n.value - o.value AS difference, o.value AS moe,
    (SELECT k.value FROM series k WHERE k.block_id = n.block_id AND k.point_key = n.point_key AND k.name = 'count_decile' AND k.step = n.step AND n.name = '_decile')
        AS count_in_training,
    CASE n.name WHEN '_decile' THEN n.step WHEN '_copied' THEN iif(n.step, 'copied', 'not copied') ELSE substr(n.name, instr(n.name, ':') + 1) END AS what
FROM named n JOIN series o ON o.block_id = n.moe_block AND o.point_key = n.moe_key AND o.step = n.step AND o.name = 'loss' || n.name;
-- The same as means over seeds with their intervals, and each seed (n).
CREATE TEMP VIEW loss_parts_drawn AS WITH means AS (
    SELECT family, series, what, max(models) AS models, max(rho) AS rho, paired_test(difference) AS test, avg(moe) AS moe, max(count_in_training) AS count_in_training, min(point_key) AS point_key
    FROM loss_parts GROUP BY 1, 2, 3
)
SELECT family, 'mean' AS part, series, what, test ->> '$.mean' AS difference, test ->> '$.lo' AS lo, test ->> '$.hi' AS hi, test ->> '$.n' AS n, moe, rho, models,
    count_in_training, point_key
FROM means
UNION ALL
SELECT family, 'seed', series, what, difference, NULL, NULL, CAST(seed AS INTEGER), moe, rho, models, NULL, point_key FROM loss_parts;
-- What is looked at inside: the pure MoE and the arm with Engram nearest to rho .8, of the arms over rho that most runs are.
CREATE TEMP VIEW looked_inside AS WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND loss IS NOT NULL AND memory = 0 AND rows = 'hashed'
), best AS (
    SELECT rest FROM runs GROUP BY rest HAVING max(rho) = 1 AND min(rho) < 1 ORDER BY count(*) DESC LIMIT 1
)
SELECT r.*, iif(rho = 1, 'pure MoE', printf('rho %.4g', rho)) AS model, arm_label(rest) AS models FROM runs r JOIN best USING (rest)
WHERE rho = 1 OR rho = (SELECT rho FROM runs JOIN best USING (rest) WHERE rho < 1 ORDER BY abs(rho - 0.8) LIMIT 1);
-- Linear CKA of a layer's residual stream with each layer (reference) of the pure MoE of another seed.
CREATE TEMP VIEW cka AS SELECT c.model || iif(rho = 1, ' (control)', '') || note AS series, c.models, c.rho, CAST(c.seed AS INTEGER) AS seed, s.step AS layer,
    CAST(substr(s.name, 5) AS INTEGER) AS reference, s.value, c.point_key
FROM looked_inside c JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key AND s.name GLOB 'cka:*';
