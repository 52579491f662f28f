-- title: Gain over pure MoE by source of the text
-- empty: no seed has both a pure MoE and an arm with Engram.
-- Held-out loss less that of the pure MoE of the same seed: of the kind of models that most runs are, the two arms with the lowest mean loss.
WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND loss IS NOT NULL AND memory = 0 AND rows = 'hashed'
        AND study = (SELECT study FROM most_runs)
), best AS (
    SELECT arm, rest FROM runs r WHERE rho < 1 AND EXISTS (SELECT 1 FROM runs b WHERE b.rest = r.rest AND b.rho = 1 AND b.seed = r.seed)
    GROUP BY arm ORDER BY count(*) >= 2 DESC, avg(loss) LIMIT 2
), gains AS (
    SELECT printf('rho %.4g, %s', r.rho, arm_label(rest)) || r.note AS series, substr(s.name, 13) AS source,
        s.value - o.value AS gain, o.value AS moe, CAST(r.seed AS INTEGER) AS seed, r.point_key, s.step AS tokens
    FROM best JOIN runs r USING (arm, rest)
    JOIN runs b USING (rest, seed)
    JOIN series s ON s.block_id = r.block_id AND s.point_key = r.point_key AND s.name LIKE 'loss_source:%'
    JOIN series o ON o.block_id = b.block_id AND o.point_key = b.point_key AND o.name = s.name
    WHERE b.rho = 1
), means AS (
    SELECT series, source, paired_test(gain) AS test, avg(moe) AS moe, max(tokens) AS tokens, min(point_key) AS point_key FROM gains GROUP BY 1, 2
)
SELECT 'mean' AS part, series, source, dense_rank() OVER (ORDER BY source) AS place, test ->> '$.mean' AS gain, test ->> '$.lo' AS lo, test ->> '$.hi' AS hi,
    test ->> '$.n' AS n, moe, tokens, point_key
FROM means
UNION ALL
SELECT 'seed', series, source, dense_rank() OVER (ORDER BY source), gain, NULL, NULL, seed, moe, tokens, point_key FROM gains
ORDER BY 1, 2, 4;
