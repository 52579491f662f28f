-- title: One variable changed: loss less that of the reference
-- empty: no two arms of this database differ in one variable beside rho.
-- An arm against one that differs in this axis alone, same seed. Axes of the model: one at its default, both trained as most
-- arms are. Axes of training: one of the family that has most runs.
WITH t AS (
    SELECT * FROM v_train WHERE loss IS NOT NULL
), changed AS (
    SELECT t.point_key, t.kind, t.seed, t.loss, t.collapsed, a.axis, a.value, a.number, json_remove(t.arm, '$.' || a.axis) AS rest, 1 AS of_model
    FROM t JOIN axis_values a USING (point_key)
    WHERE t.main AND a.is_default = 0
        AND a.axis IN ('iso', 'backbone', 'orders', 'heads', 'gate', 'fusion', 'compress', 'conv', 'rows')
    UNION ALL
    SELECT t.point_key, t.kind, t.seed, t.loss, t.collapsed, a.axis, a.value, a.number, json_remove(t.arm, '$.' || a.axis), 0
    FROM t JOIN axis_values a USING (point_key)
    WHERE NOT t.main AND a.axis IN ('schedule', 'rule', 'vocab_rule', 'table_rule', 'table_lr', 'batch', 'dtype')
), reference AS (
    SELECT c.axis, c.rest, t.seed, t.loss
    FROM (SELECT DISTINCT axis, rest, of_model FROM changed) c
    JOIN t ON t.main AND json_remove(t.arm, '$.' || c.axis) = c.rest
    JOIN axis_values a ON a.point_key = t.point_key AND a.axis = c.axis
    WHERE a.is_default OR NOT c.of_model
), named AS (
    SELECT c.*, c.loss - r.loss AS difference, printf('%s = %s at rho %g%s%s%s%s', axis, coalesce(printf('%g', number), value), rest ->> '$.rho',
            iif(rest ->> '$.streams' > 1, printf(', %d streams', rest ->> '$.streams'), ''),
            iif(rest ->> '$.memory' > 0, printf(', memory %.4g', rest ->> '$.memory'), ''),
            iif(axis IN ('heads', 'orders'), ', hold ' || (rest ->> '$.hold'), ''),
            iif(rest ->> '$.budget' <> 20, printf(', budget %g', rest ->> '$.budget'), '')) AS name
    FROM changed c JOIN reference r USING (axis, rest, seed)
), means AS (
    SELECT name, axis, value, paired_test(difference) AS test, min(point_key) AS point_key FROM named GROUP BY name
), placed AS (
    SELECT *, row_number() OVER (ORDER BY axis DESC, name DESC) AS place FROM means
)
SELECT 'mean' AS part, place, name, axis, value, test ->> '$.mean' AS y, test ->> '$.lo' AS lo, test ->> '$.hi' AS hi,
    CAST(test ->> '$.n' AS INTEGER) AS n, test ->> '$.p_two' AS p, 0 AS collapsed, point_key
FROM placed
UNION ALL
SELECT 'seed', place, name, n.axis, n.value, n.difference, NULL, NULL, CAST(n.seed AS INTEGER), NULL, n.collapsed, n.point_key
FROM named n JOIN placed USING (name)
UNION ALL
SELECT 'paper', p.place, p.name, p.axis, p.value, o.difference, NULL, NULL, 1, NULL, 0, ''
FROM placed p JOIN (
    SELECT 'gate' AS axis, 'off' AS value, (SELECT y FROM published WHERE figure = 'fig5' AND x = 'w/o gating') - r.y AS difference
        FROM published r WHERE figure = 'fig5' AND x = 'reference L2+L6'
    UNION ALL SELECT 'compress', 'off', (SELECT y FROM published WHERE figure = 'fig5' AND x = 'w/o token compress') - r.y
        FROM published r WHERE figure = 'fig5' AND x = 'reference L2+L6'
    UNION ALL SELECT 'fusion', 'read', (SELECT y FROM published WHERE figure = 'fig5' AND x = 'w/o multi branch') - r.y
        FROM published r WHERE figure = 'fig5' AND x = 'reference L2+L6'
    UNION ALL SELECT 'orders', '2-4', (SELECT y FROM published WHERE figure = 'fig5' AND x = '+4-gram') - r.y
        FROM published r WHERE figure = 'fig5' AND x = 'reference L2+L6'
    UNION ALL SELECT 'conv', '4', r.y - (SELECT y FROM published WHERE figure = 'fig5' AND x = 'w/o short conv')
        FROM published r WHERE figure = 'fig5' AND x = 'reference L2+L6') o
    ON o.axis = p.axis AND o.value = p.value
ORDER BY 1, 2, 9;
