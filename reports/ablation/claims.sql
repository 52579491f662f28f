-- Claims of the paper, and what these runs say of them. Differences in nats per token; ours with 95 % intervals over paired
-- seeds. The paper has one run per number, read from its figures; p is two-sided and Holm-corrected over the rows.
-- empty: No arms that a claim is about.
WITH t AS (
    SELECT *, json_remove(arm, '$.rho') AS norho, engram_at = '1' AND gate = 'copysign' AND fusion = 'streams' AND compress = 'on'
        AND orders = '2-3' AND conv = 0 AND rows = 'hashed' AND backbone = 'moe' AND iso = 'parameters' AND heads = -1 AND hold = 'total_bytes' AS plain
    FROM v_train WHERE main AND loss IS NOT NULL
), p AS (
    SELECT (SELECT y FROM published WHERE figure = 'fig3_left' AND series = 'C=6e20' AND x = 100) AS u100,
        (SELECT y FROM published WHERE figure = 'fig3_left' AND series = 'C=6e20' AND x = 79.5) AS u80,
        (SELECT y FROM published WHERE figure = 'fig3_left' AND series = 'C=6e20' AND x = 39.7) AS u40,
        (SELECT y FROM published WHERE figure = 'fig5' AND x = 'reference L2+L6') AS ref,
        (SELECT y FROM published WHERE figure = 'fig5' AND x = 2) AS l2, (SELECT y FROM published WHERE figure = 'fig5' AND x = 12) AS l12,
        (SELECT y FROM published WHERE figure = 'fig5' AND x = 1) AS l1,
        (SELECT y FROM published WHERE figure = 'fig5' AND x = 'w/o gating') AS gate, (SELECT y FROM published WHERE figure = 'fig5' AND x = 'w/o multi branch') AS branch,
        (SELECT y FROM published WHERE figure = 'fig5' AND x = 'w/o token compress') AS compress,
        (SELECT y FROM published WHERE figure = 'fig5' AND x = '+4-gram') AS grams, (SELECT y FROM published WHERE figure = 'fig5' AND x = 'w/o short conv') AS conv,
        (SELECT avg(o.y - e.y) FROM published o JOIN published e ON e.figure = o.figure AND e.x = o.x AND e.series = 'Engram'
            WHERE o.figure = 'fig3_right' AND o.series = 'OverEncoding') AS over,
        -0.02838 AS slope
), axis_pairs AS ( -- loss at `a` less loss at `b` of one axis, all else equal
    SELECT 'L(rho 1) - L(rho .8)' AS id, a.budget, a.loss - b.loss AS d FROM t a JOIN t b USING (norho, seed) WHERE a.plain AND a.memory = 0 AND a.rho = 1 AND b.rho = 0.8
    UNION ALL SELECT 'L(rho .4) - L(rho .8)', a.budget, a.loss - b.loss FROM t a JOIN t b USING (norho, seed) WHERE a.plain AND a.memory = 0 AND a.rho = 0.4 AND b.rho = 0.8
    UNION ALL SELECT 'last layer - layer 1', a.budget, a.loss - b.loss FROM t a JOIN t b
        ON json_remove(a.arm, '$.engram_at') = json_remove(b.arm, '$.engram_at') AND a.seed = b.seed
        WHERE b.plain AND b.rho = 0.8 AND a.rho < 1 AND a.engram_at = CASE a.rung WHEN 'R0' THEN '3' WHEN 'R0c' THEN '3' WHEN 'R1' THEN '5' WHEN 'R2' THEN '7' END
    UNION ALL SELECT 'layer 0 - layer 1', a.budget, a.loss - b.loss FROM t a JOIN t b
        ON json_remove(a.arm, '$.engram_at') = json_remove(b.arm, '$.engram_at') AND a.seed = b.seed
        WHERE b.plain AND b.rho = 0.8 AND a.rho < 1 AND a.engram_at = '0'
    UNION ALL SELECT 'layer 1 - layers 1 and 3', a.budget, b.loss - a.loss FROM t a JOIN t b
        ON json_remove(a.arm, '$.engram_at') = json_remove(b.arm, '$.engram_at') AND a.seed = b.seed
        WHERE b.plain AND b.rho = 0.8 AND a.rho < 1 AND a.engram_at = '1+3'
    UNION ALL SELECT 'no gate', a.budget, a.loss - b.loss FROM t a JOIN t b ON json_remove(a.arm, '$.gate') = json_remove(b.arm, '$.gate') AND a.seed = b.seed
        WHERE b.plain AND b.rho = 0.8 AND a.gate = 'off' AND b.gate = 'copysign' AND a.streams = -1
    UNION ALL SELECT 'no multi-branch fusion', a.budget, a.loss - b.loss FROM t a JOIN t b ON json_remove(a.arm, '$.fusion') = json_remove(b.arm, '$.fusion') AND a.seed = b.seed
        WHERE b.plain AND b.rho = 0.8 AND a.fusion = 'read' AND b.fusion = 'streams'
    UNION ALL SELECT 'no token compression', a.budget, a.loss - b.loss FROM t a JOIN t b ON json_remove(a.arm, '$.compress') = json_remove(b.arm, '$.compress') AND a.seed = b.seed
        WHERE b.plain AND b.rho = 0.8 AND a.compress = 'off' AND b.compress = 'on'
    UNION ALL SELECT 'orders 2-4 in the same bytes', a.budget, a.loss - b.loss FROM t a JOIN t b ON json_remove(a.arm, '$.orders') = json_remove(b.arm, '$.orders') AND a.seed = b.seed
        WHERE b.plain AND b.rho = 0.8 AND a.orders = '2-4' AND b.orders = '2-3' AND a.hold = 'total_bytes'
    UNION ALL SELECT 'no short conv', a.budget, b.loss - a.loss FROM t a JOIN t b ON json_remove(a.arm, '$.conv') = json_remove(b.arm, '$.conv') AND a.seed = b.seed
        WHERE b.plain AND b.rho = 0.8 AND a.conv = 4 AND b.conv = 0
    UNION ALL SELECT 'over-encoding - Engram, same table', a.budget, avg(a.loss - b.loss) FROM t a JOIN t b ON json_remove(a.arm, '$.fusion') = json_remove(b.arm, '$.fusion') AND a.seed = b.seed
        WHERE b.plain AND a.fusion = 'input' AND a.memory > 0 GROUP BY a.budget, a.seed
    UNION ALL SELECT 'slope of loss per tenfold table', budget, (avg(loss * x) - avg(loss) * avg(x)) / nullif(avg(x * x) - avg(x) * avg(x), 0)
        FROM (SELECT t.*, log10(table_parameters) AS x FROM t WHERE plain AND memory > 0)
        GROUP BY json_remove(arm, '$.memory'), seed HAVING count(DISTINCT memory) >= 3
), seeds AS (
    SELECT id || iif(budget = 20, '', printf(', %g tokens per parameter', budget)) AS name, id, paired_test(d) AS test FROM axis_pairs GROUP BY 1, 2
), listed AS (
    SELECT s.*, c.claim, c.published FROM seeds s JOIN (
        SELECT 'L(rho 1) - L(rho .8)' AS id, 'Engram lowers the loss at equal parameters' AS claim, u100 - u80 AS published, 1 AS place FROM p
        UNION ALL SELECT 'L(rho .4) - L(rho .8)', 'too much Engram raises it again', u40 - u80, 2 FROM p
        UNION ALL SELECT 'slope of loss per tenfold table', 'the loss falls with the logarithm of the table', slope, 3 FROM p
        UNION ALL SELECT 'over-encoding - Engram, same table', 'Engram is better than over-encoding', over, 4 FROM p
        UNION ALL SELECT 'last layer - layer 1', 'early placement is better', l12 - l2, 5 FROM p
        UNION ALL SELECT 'layer 0 - layer 1', 'but not the first layer', l1 - l2, 6 FROM p
        UNION ALL SELECT 'layer 1 - layers 1 and 3', 'two modules are better than one', l2 - ref, 7 FROM p
        UNION ALL SELECT 'no gate', 'the gate helps', gate - ref, 8 FROM p
        UNION ALL SELECT 'no multi-branch fusion', 'fusing into each stream helps', branch - ref, 9 FROM p
        UNION ALL SELECT 'no token compression', 'compressed ids help', compress - ref, 10 FROM p
        UNION ALL SELECT 'orders 2-4 in the same bytes', '4-grams do not help', grams - ref, 11 FROM p
        UNION ALL SELECT 'no short conv', 'the short conv hardly matters', conv - ref, 12 FROM p) c USING (id)
), corrected AS (SELECT holm(name, test ->> '$.p_two') AS p FROM listed)
SELECT claim, name AS "difference", printf('%+.4f', published) AS "paper (published, 1 run)",
    printf('%+.4f', test ->> '$.mean') || iif(test ->> '$.lo' IS NULL, '', printf(' (%+.4f to %+.4f)', test ->> '$.lo', test ->> '$.hi')) AS ours,
    test ->> '$.n' AS seeds, coalesce(printf('%.4f', (SELECT value FROM json_each(p) WHERE key = name)), '') AS "p (Holm)",
    claim(test, (SELECT value FROM json_each(p) WHERE key = name), published) AS verdict
FROM listed, corrected
ORDER BY claim;
