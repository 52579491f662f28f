-- title: Gates over training
-- empty: no trained run of this database has gates that were looked at.
-- Of the arms that differ in the gate's formula alone, those with most formulas, then streams, then runs.
-- Means over seeds with 95 % intervals, on one sample of held-out text.
WITH parts AS (
    SELECT c.formula, c.seed, c.point_key, '["' || replace(s.name, ':', '","') || '"]' AS name, s.step, s.value
    FROM chosen c JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key AND s.name GLOB 'gate:*'
), chosen_parts AS (
    SELECT formula, seed, point_key, step, name ->> '$[1]' AS measure, CAST(name ->> '$[2]' AS INTEGER) AS layer, CAST(name ->> '$[3]' AS INTEGER) AS stream,
        iif(name ->> '$[1]' = 'saturated05', 100 * value, value) AS value
    FROM parts WHERE name ->> '$[1]' IN ('mean', 'saturated05', 'slope')
)
SELECT formula || printf(', layer %d', layer) AS panel, printf('stream %d', stream) AS series, measure, formula, layer, stream, step,
    dense_rank() OVER (ORDER BY step) AS place, test ->> '$.mean' AS value, (test ->> '$.lo') AS lo,
    (test ->> '$.hi') AS hi, test ->> '$.n' AS n, point_key
FROM (SELECT formula, layer, stream, step, measure, paired_test(value) AS test, min(point_key) AS point_key FROM chosen_parts GROUP BY 1, 2, 3, 4, 5)
ORDER BY formula DESC, layer, stream, measure, step;
