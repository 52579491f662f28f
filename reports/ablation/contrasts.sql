-- title: One variable changed: loss less that of the reference
-- empty: no two arms of this database differ in one variable beside rho.
-- An arm against one that differs in this axis alone, same seed. Axes of the model: one at its default, both trained as most
-- arms are. Axes of training: one of the family that has most runs. rho, memory, layers, learning rate and bias step have their own figures.
WITH t AS (
    SELECT * FROM v_train WHERE loss IS NOT NULL
), changed AS (
    SELECT t.*, a.axis, iif(a.number IS NULL, a.value, printf('%g', a.number)) AS value, json_remove(t.arm, '$.' || a.axis) AS rest, t.main AS of_model
    FROM t JOIN axis_values a USING (point_key)
    WHERE a.axis NOT IN ('rho', 'memory', 'engram_at', 'hold', 'lr', 'bias_step', 'model_seed', 'threads', 'rung', 'text', 'budget', 'streams')
        AND iif(t.main, NOT a.is_default, a.axis IN (SELECT key FROM json_each(t.family)))
), reference AS (
    SELECT c.axis, c.rest, t.seed, t.loss, t.collapsed
    FROM (SELECT DISTINCT axis, rest, of_model FROM changed) c
    JOIN t ON t.main AND json_remove(t.arm, '$.' || c.axis) = c.rest
    JOIN axis_values a ON a.point_key = t.point_key AND a.axis = c.axis
    WHERE a.is_default OR NOT c.of_model
), named AS (
    SELECT c.*, c.loss - r.loss AS difference, (c.collapsed > 0) + (r.collapsed > 0) AS bad, printf('%s = %s at ', axis, value)
        || iif(rest ->> '$.memory' > 0, '', printf('rho %g', rest ->> '$.rho')) || iif(axis IN ('heads', 'orders'), ', hold = ' || (rest ->> '$.hold'), '')
        || coalesce(iif(rest ->> '$.memory' > 0, '', ', ') || nullif(arm_label(json_remove(rest, '$.rho', '$.hold', iif(rung = 'R0c', '$.rung', '$.rho'),
            iif(budget = 20, '$.budget', '$.rho'))), ''), '') AS name
    FROM changed c JOIN reference r USING (axis, rest, seed)
), means AS (
    SELECT name, axis, value, paired_test(difference) AS test, sum(bad) AS bad, min(point_key) AS point_key FROM named GROUP BY name
), placed AS (
    SELECT *, row_number() OVER (ORDER BY axis DESC, name DESC) AS place FROM means
)
SELECT 'mean' AS part, place, name, axis, value, test ->> '$.mean' AS y, test ->> '$.lo' AS lo, test ->> '$.hi' AS hi,
    CAST(test ->> '$.n' AS INTEGER) AS n, test ->> '$.p_two' AS p, bad AS collapsed, point_key
FROM placed
UNION ALL
SELECT 'seed', place, name, n.axis, n.value, n.difference, NULL, NULL, CAST(n.seed AS INTEGER), NULL, n.bad, n.point_key
FROM named n JOIN placed USING (name)
UNION ALL
SELECT 'paper', p.place, p.name, p.axis, p.value, o.y - r.y, NULL, NULL, 1, NULL, 0, ''
FROM placed p JOIN published r ON r.figure = 'fig5' AND r.x = CASE p.axis WHEN 'conv' THEN 'w/o short conv' ELSE 'reference L2+L6' END
JOIN published o ON o.figure = 'fig5' AND o.x = CASE p.axis || '=' || p.value WHEN 'gate=off' THEN 'w/o gating' WHEN 'compress=off' THEN 'w/o token compress'
    WHEN 'fusion=read' THEN 'w/o multi branch' WHEN 'orders=2-4' THEN iif(p.name LIKE '%total_bytes%', '+4-gram', NULL) WHEN 'conv=4' THEN 'reference L2+L6' END
ORDER BY 1, 2, 9;
