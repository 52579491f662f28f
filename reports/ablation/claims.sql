-- Claims of the paper, and what these runs say of them. Differences in nats per token; ours with 95 % intervals over paired seeds.
-- The paper's numbers are read from its figures, one run each. Both p are Holm-corrected over the rows: p for, of no effect or the
-- opposite one; p against, of an effect as large as the paper's.
-- empty: No arms on the training text that a claim is about.
WITH fig5 AS (SELECT x, y FROM published WHERE figure = 'fig5'
), p AS (
    SELECT (SELECT y FROM published WHERE figure = 'fig3_left' AND series = 'C=6e20' AND x = 100) AS u100,
        (SELECT y FROM published WHERE figure = 'fig3_left' AND series = 'C=6e20' AND x = 79.5) AS u80,
        (SELECT y FROM published WHERE figure = 'fig3_left' AND series = 'C=6e20' AND x = 39.7) AS u40,
        (SELECT y FROM fig5 WHERE x = 'reference L2+L6') AS ref, (SELECT y FROM fig5 WHERE x = 2) AS l2, (SELECT y FROM fig5 WHERE x = 12) AS l12,
        (SELECT y FROM fig5 WHERE x = 1) AS l1, (SELECT y FROM fig5 WHERE x = 'w/o gating') AS gate, (SELECT y FROM fig5 WHERE x = 'w/o multi branch') AS branch,
        (SELECT y FROM fig5 WHERE x = 'w/o token compress') AS compress, (SELECT y FROM fig5 WHERE x = '+4-gram') AS grams,
        (SELECT y FROM fig5 WHERE x = 'w/o short conv') AS conv,
        (SELECT avg(o.y - e.y) FROM published o JOIN published e ON e.figure = o.figure AND e.x = o.x AND e.series = 'Engram'
            WHERE o.figure = 'fig3_right' AND o.series = 'OverEncoding') AS over,
        (SELECT (avg(y * log10(x)) - avg(y) * avg(log10(x))) / (avg(log10(x) * log10(x)) - avg(log10(x)) * avg(log10(x)))
            FROM published WHERE figure = 'fig3_right' AND series = 'Engram') AS slope
), claims AS ( -- loss at value a of the axis less loss at b, all else equal and at its default; margin > 0: the claim is "less than that"
    SELECT 1 AS place, 'Engram lowers the loss at equal parameters' AS claim, 'L(rho 1) - L(rho .8)' AS id, 'rho' AS axis, '1' AS a, '0.8' AS b, u100 - u80 AS published, 0 AS margin FROM p
    UNION ALL SELECT 2, 'too much Engram raises it again', 'L(rho .4) - L(rho .8)', 'rho', '0.4', '0.8', u40 - u80, 0 FROM p
    UNION ALL SELECT 3, 'the loss falls with the logarithm of the table', 'slope per tenfold table', NULL, NULL, NULL, slope, 0 FROM p
    UNION ALL SELECT 4, 'Engram is better than over-encoding', 'over-encoding - Engram, same table', NULL, NULL, NULL, over, 0 FROM p
    UNION ALL SELECT 5, 'early placement is better', 'last layer - layer 1', 'engram_at', 'last', '1', l12 - l2, 0 FROM p
    UNION ALL SELECT 6, 'but not the first layer', 'layer 0 - layer 1', 'engram_at', '0', '1', l1 - l2, 0 FROM p
    UNION ALL SELECT 7, 'two modules are better than one', 'layer 1 - layers 1 and 3', 'engram_at', '1', '1+3', l2 - ref, 0 FROM p
    UNION ALL SELECT 8, 'the gate helps', 'no gate - gate', 'gate', 'off', 'copysign', gate - ref, 0 FROM p
    UNION ALL SELECT 9, 'fusing into each stream helps', 'into the read - into each stream', 'fusion', 'read', 'streams', branch - ref, 0 FROM p
    UNION ALL SELECT 10, 'compressed ids help', 'no compression - compression', 'compress', 'off', 'on', compress - ref, 0 FROM p
    UNION ALL SELECT 11, '4-grams in the same bytes hurt', 'orders 2-4 - orders 2-3', 'orders', '2-4', '2-3', grams - ref, 0 FROM p
    UNION ALL SELECT 12, 'the short conv hardly matters', 'no conv - conv', 'conv', '0', '4', conv - ref, gate - ref FROM p
), t AS (
    SELECT *, engram_at = '1' AND gate = 'copysign' AND fusion = 'streams' AND compress = 'on' AND orders = '2-3' AND conv = 0
        AND rows = 'hashed' AND backbone = 'moe' AND iso = 'parameters' AND heads = -1 AND hold = 'total_bytes' AND kv_bias = 'off' AS plain,
        CASE rung WHEN 'R1' THEN '5' WHEN 'R2' THEN '7' WHEN 'tiny' THEN '1' ELSE '3' END AS last
    FROM v_train WHERE main AND loss IS NOT NULL AND text = 'training'
), sized AS ( -- a mean or slope over sizes of tables is of the seeds that have all sizes of their study
    SELECT t.*, log10(table_parameters) AS x, s.sizes
    FROM t JOIN (SELECT study, count(DISTINCT memory) AS sizes FROM t WHERE plain AND memory > 0 GROUP BY study) s USING (study)
    WHERE plain AND memory > 0
), pairs AS (
    SELECT a.study, a.seed, a.memory, a.loss - b.loss AS d, (a.collapsed > 0) + (b.collapsed > 0) AS collapsed
    FROM t a JOIN t b ON json_remove(a.arm, '$.fusion') = json_remove(b.arm, '$.fusion') AND a.seed = b.seed
    WHERE b.plain AND a.fusion = 'input' AND a.memory > 0
), over_encoding AS (
    SELECT p.*, s.sizes FROM pairs p JOIN (SELECT study, count(DISTINCT memory) AS sizes FROM pairs GROUP BY study) s USING (study)
), differences AS (
    SELECT c.id, a.study, a.loss - b.loss AS d, (a.collapsed > 0) + (b.collapsed > 0) AS collapsed
    FROM claims c JOIN t a ON CAST(a.arm ->> ('$.' || axis) AS TEXT) = iif(c.a = 'last', a.last, c.a)
    JOIN t b ON CAST(b.arm ->> ('$.' || axis) AS TEXT) = c.b AND b.seed = a.seed AND json_remove(a.arm, '$.' || axis) = json_remove(b.arm, '$.' || axis)
    WHERE (a.plain OR b.plain) AND a.memory = 0 AND b.rho = 0.8
    UNION ALL
    SELECT 'over-encoding - Engram, same table', study, avg(d), sum(collapsed) FROM over_encoding
    GROUP BY study, seed HAVING count(DISTINCT memory) = max(sizes)
    UNION ALL
    SELECT 'slope per tenfold table', study, (avg(loss * x) - avg(loss) * avg(x)) / nullif(avg(x * x) - avg(x) * avg(x), 0), sum(collapsed > 0)
    FROM sized GROUP BY study, seed HAVING count(DISTINCT memory) = max(sizes) AND max(sizes) >= 3
), tests AS (
    SELECT id, study, paired_test(d) AS test, sum(collapsed) AS collapsed FROM differences GROUP BY id, study
), judged AS (
    SELECT c.*, t.study, t.test, t.collapsed, c.id || study AS name, claim_p(test, published, margin) AS p FROM tests t JOIN claims c USING (id)
), corrected AS (
    SELECT holm(name, p ->> '$.agrees') AS agrees, holm(name, p ->> '$.disagrees') AS disagrees FROM judged
), listed AS (
    SELECT j.*, (SELECT value FROM json_each(agrees) WHERE key = name) AS p_for, (SELECT value FROM json_each(disagrees) WHERE key = name) AS p_against
    FROM judged j, corrected
)
SELECT claim, study AS models, id AS "difference",
    printf('%+.4f', published) || CASE id WHEN 'slope per tenfold table' THEN ', our fit of 8 points' WHEN 'over-encoding - Engram, same table' THEN ', mean of 2 sizes'
        ELSE '' END || iif(margin > 0, printf(' (matters from %.4f)', margin), '') AS "paper (published)",
    interval(test ->> '$.mean', test ->> '$.lo', test ->> '$.hi') AS ours, test ->> '$.n' AS seeds, collapsed AS "collapsed runs",
    iif(p_for < 0.00005, '< 0.0001', printf('%.4f', p_for)) AS "p for", iif(p_against < 0.00005, '< 0.0001', printf('%.4f', p_against)) AS "p against", claim(p_for, p_against) AS verdict
FROM listed ORDER BY place, study <> 'R0c, 20 tokens per parameter', study;
