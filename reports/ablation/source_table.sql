-- Held-out loss by source of the text: means over seeds, of the pure MoE and the arm with Engram that has the lowest mean loss, of the
-- kind of models that most runs are.
-- empty: No seed has both a pure MoE and an arm with Engram.
WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND loss IS NOT NULL AND memory = 0 AND rows = 'hashed'
        AND study = (SELECT study FROM most_runs)
), best AS (
    SELECT rest, rho FROM runs r WHERE rho < 1 AND EXISTS (SELECT 1 FROM runs b WHERE b.rest = r.rest AND b.rho = 1 AND b.seed = r.seed)
    GROUP BY arm ORDER BY count(*) >= 2 DESC, avg(loss) LIMIT 1
), pairs AS ( -- an earlier build stored no bits
    SELECT arm_label(r.rest) AS models, r.rho, substr(n.name, 13) AS source, n.step AS tokens, n.value AS nats, b.value AS bits, o.value AS moe_nats, q.value AS moe_bits
    FROM best JOIN runs r USING (rest, rho) JOIN runs m ON m.rest = r.rest AND m.rho = 1 AND m.seed = r.seed
    JOIN series n ON n.block_id = r.block_id AND n.point_key = r.point_key AND n.name LIKE 'loss_source:%'
    JOIN series o ON o.block_id = m.block_id AND o.point_key = m.point_key AND o.name = n.name
    LEFT JOIN series b ON b.block_id = r.block_id AND b.point_key = r.point_key AND b.name = 'bits_source:' || substr(n.name, 13)
    LEFT JOIN series q ON q.block_id = m.block_id AND q.point_key = m.point_key AND q.name = b.name
), sources AS (
    SELECT source, max(models) AS models, max(rho) AS rho, paired_test(nats - moe_nats) AS t, avg(moe_nats) AS moe_nats, avg(nats) AS nats, avg(moe_bits) AS moe_bits,
        avg(bits) AS bits, max(tokens) AS tokens, count(*) AS n
    FROM pairs GROUP BY source
)
SELECT source, models, printf('%,d', tokens) AS "held-out tokens", n AS seeds, printf('%.4f', moe_nats) AS "pure MoE, nats per token",
    printf('%.4f (rho %g)', nats, rho) AS "Engram, nats per token", printf('%.4f', moe_bits) AS "pure MoE, bits per byte",
    printf('%.4f', bits) AS "Engram, bits per byte",
    interval(t ->> '$.mean', t ->> '$.lo', t ->> '$.hi') AS "difference, nats per token"
FROM sources ORDER BY tokens DESC;
