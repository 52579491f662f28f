-- title: Which tokens need the memory: loss by frequency of the context's n-gram, and by class
-- empty: no run with Engram in this database.
-- The arm with Engram that has most seeds: its loss, that with its output at zero, and the pure MoE of the same seeds.
WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND loss IS NOT NULL AND memory = 0
), best AS (
    SELECT arm, rest FROM runs WHERE suppressed_loss IS NOT NULL AND rows = 'hashed' GROUP BY arm
    ORDER BY count(*) DESC, abs(rho - 0.8), avg(loss) LIMIT 1
), chosen AS (
    SELECT 'Engram' AS model, r.*, 'loss' AS prefix FROM runs r JOIN best USING (arm, rest)
    UNION ALL SELECT 'Engram silenced', r.*, 'suppressed' FROM runs r JOIN best USING (arm, rest)
    UNION ALL SELECT 'pure MoE', b.*, 'loss' FROM runs b JOIN best USING (rest) WHERE b.rho = 1
), values_ AS (
    SELECT c.model || CASE WHEN min(c.kind) OVER () = 'measured' AND max(c.kind) OVER () = 'measured' THEN '' WHEN max(c.kind) OVER () = min(c.kind) OVER () THEN ' (imported)' ELSE ' (partly imported)' END AS series, c.seed, c.point_key,
        CASE WHEN s.name LIKE '%\_decile' ESCAPE '\' THEN 'decile' WHEN s.name LIKE '%\_copied' ESCAPE '\' THEN 'class' ELSE 'class' END AS part,
        CASE WHEN s.name LIKE '%\_decile' ESCAPE '\' THEN CAST(s.step AS TEXT)
            WHEN s.name LIKE '%\_copied' ESCAPE '\' THEN iif(s.step, 'copied', 'not copied') ELSE substr(s.name, instr(s.name, ':') + 1) END AS what,
        s.value
    FROM chosen c JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key
        AND (s.name = c.prefix || '_decile' OR s.name = c.prefix || '_copied' OR s.name LIKE c.prefix || '\_class:%' ESCAPE '\')
)
SELECT part, series, what, dense_rank() OVER (PARTITION BY part ORDER BY iif(part = 'decile', printf('%3d', what), what)) AS place,
    test ->> '$.mean' AS loss, coalesce(test ->> '$.lo', test ->> '$.mean') AS lo, coalesce(test ->> '$.hi', test ->> '$.mean') AS hi, test ->> '$.n' AS n,
    (SELECT avg(s.value) FROM series s WHERE s.name = 'count_decile' AND part = 'decile' AND s.step = CAST(what AS INTEGER)
        AND s.point_key = m.point_key) AS count_in_training, point_key
FROM (SELECT part, series, what, paired_test(value) AS test, min(point_key) AS point_key FROM values_ GROUP BY 1, 2, 3) m
ORDER BY 1, 2, 4;
