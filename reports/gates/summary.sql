-- After training, on held-out text: means over seeds.
-- empty: No trained run of this database has gates that were looked at.
WITH parts AS (
    SELECT c.formula, c.seed, c.point_key, '["' || replace(s.name, ':', '","') || '"]' AS name, s.step, s.value
    FROM chosen c JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key AND s.name GLOB 'gate:*'
)
SELECT formula AS "gate", name ->> '$[2]' AS layer, name ->> '$[3]' AS stream, count(DISTINCT seed) AS runs,
    printf('%.3f', avg(value) FILTER (WHERE name ->> '$[1]' = 'mean')) AS "mean gate",
    printf('%.1f %%', 100 * avg(value) FILTER (WHERE name ->> '$[1]' = 'closed')) AS "at most .05",
    printf('%.1f %%', 100 * avg(value) FILTER (WHERE name ->> '$[1]' = 'saturated05')) AS "beyond [.05, .95]",
    printf('%.1f %%', 100 * avg(value) FILTER (WHERE name ->> '$[1]' = 'saturated10')) AS "beyond [.1, .9]",
    printf('%.3g', avg(value) FILTER (WHERE name ->> '$[1]' = 'score')) AS "mean |score|",
    printf('%.3g', avg(value) FILTER (WHERE name ->> '$[1]' = 'slope')) AS "mean d(gate)/d(score)"
FROM parts WHERE step = 100 AND name ->> '$[3]' IS NOT NULL GROUP BY formula, name ->> '$[2]', name ->> '$[3]'
ORDER BY formula DESC, 2, 3;
