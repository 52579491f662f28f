-- title: Behind an encoder of images: hidden share with its layers before the step and without
-- empty: this run holds no points of prefetch with the axis vision on and off.
-- Of the points that differ in vision, tokens, window and source alone, the set with the most; of several windows
-- of a number of tokens the first by name.
WITH t AS (
    SELECT *, json_remove(a, '$.vision', '$.tokens', '$.window', '$.store', '$.residency', '$.io', '$.scales') AS rest
    FROM fetches WHERE run_id = :run AND experiment = 'prefetch'
), picked AS (
    SELECT * FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest HAVING count(DISTINCT a ->> '$.vision') > 1 ORDER BY count(*) DESC, rest LIMIT 1)
        AND a ->> '$.window' = (SELECT min(w.a ->> '$.window') FROM t w WHERE w.rest = t.rest AND w.a ->> '$.tokens' = t.a ->> '$.tokens')
)
SELECT source AS panel, iif(a ->> '$.vision' = 'on', 'behind the encoder', 'text alone') || made AS series, a ->> '$.vision' AS vision, CAST(a ->> '$.tokens' AS INTEGER) AS tokens,
    m ->> '$.hidden[0]' AS hidden, m ->> '$.hidden[1]' AS lo, m ->> '$.hidden[2]' AS hi, m ->> '$.window_us[0]' / 1e3 AS window_ms,
    m ->> '$.wanted_window_us[0]' / 1e3 AS wanted_ms, iif(a ->> '$.window' = 'backbone', '', ' (emulated)') AS paced, point_key
FROM picked
ORDER BY place, vision, tokens;
