-- title: Two modules in one queue: hidden share of each
-- empty: this run holds no points of prefetch with two modules.
-- Of the points that differ in modules, tokens and source alone, the set with the most.
WITH t AS (
    SELECT *, json_remove(a, '$.modules', '$.tokens', '$.store', '$.residency', '$.io', '$.scales') AS rest
    FROM fetches WHERE run_id = :run AND experiment = 'prefetch'
), picked AS (
    SELECT * FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest HAVING max(a ->> '$.modules') > 1 ORDER BY count(*) DESC, rest LIMIT 1)
), parts AS (
    SELECT iif(a ->> '$.modules' = 1, 'first alone', 'first of two') AS part, m -> '$.hidden_first' AS y, * FROM picked
    UNION ALL
    SELECT 'second of two', m -> '$.hidden_second', * FROM picked WHERE a ->> '$.modules' = 2
)
SELECT source AS panel, part || made AS series, CAST(a ->> '$.tokens' AS INTEGER) AS tokens, y ->> '$[0]' AS hidden, y ->> '$[1]' AS lo, y ->> '$[2]' AS hi,
    a ->> '$.placement' AS layer, a ->> '$.apart' AS apart, iif(a ->> '$.window' = 'backbone', NULL, substr(a ->> '$.window', 7)) AS pace, point_key
FROM parts
ORDER BY place, part, tokens;
