-- title: Loss less that of pure MoE, by frequency of the context
-- empty: no seed has both a pure MoE and an arm with Engram.
-- The arm with Engram that has most seeds, and the same model with Engram's output at zero, less the pure MoE of the same seed.
WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND loss IS NOT NULL AND memory = 0
), best AS (
    SELECT arm, rest, rho FROM runs WHERE suppressed_loss IS NOT NULL AND rows = 'hashed' GROUP BY arm
    ORDER BY count(*) DESC, abs(rho - 0.8), avg(loss) LIMIT 1
), chosen AS (
    SELECT r.*, b.block_id AS moe_block, b.point_key AS moe_key FROM runs r JOIN best USING (arm, rest)
    JOIN runs b ON b.rest = r.rest AND b.rho = 1 AND b.seed = r.seed
), models AS (
    SELECT 'loss' AS prefix, 'Engram' AS model UNION ALL SELECT 'suppressed', 'Engram silenced'
), differences AS (
    SELECT m.model || CASE WHEN min(c.kind) OVER () = 'measured' AND max(c.kind) OVER () = 'measured' THEN ''
            ELSE ' (imported)' END AS series, c.rho, c.seed, c.point_key, c.block_id, s.step AS what, s.value - o.value AS difference, o.value AS moe
    FROM chosen c CROSS JOIN models m
    JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key AND (s.name = m.prefix || '_decile')
    JOIN series o ON o.block_id = c.moe_block AND o.point_key = c.moe_key AND o.step = s.step AND o.name = 'loss' || substr(s.name, length(m.prefix) + 1)
), means AS (
    SELECT series, what, max(rho) AS rho, paired_test(difference) AS test, avg(moe) AS moe, min(point_key) AS point_key, min(block_id) AS block_id
    FROM differences GROUP BY 1, 2
)
SELECT 'mean' AS part, series, what, what + 1 AS place, test ->> '$.mean' AS difference, test ->> '$.lo' AS lo, test ->> '$.hi' AS hi,
    test ->> '$.n' AS n, moe, rho, (SELECT k.value FROM series k WHERE k.block_id = m.block_id AND k.point_key = m.point_key AND k.name = 'count_decile' AND k.step = m.what) AS count_in_training, point_key
FROM means m
UNION ALL
SELECT 'seed', series, what, what + 1, difference, NULL, NULL, CAST(seed AS INTEGER), moe, rho, NULL, point_key FROM differences
ORDER BY 1, 2, 4;
