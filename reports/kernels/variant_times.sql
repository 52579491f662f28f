-- What each variant takes at 1, 4, 16 and 256 tokens, and what it should take. Of each operation the points that differ in tokens and
-- variant alone, the set with the most.
-- empty: This run holds no kernel at 1, 4, 16 or 256 tokens.
WITH t AS (
    SELECT v.point_key, v.experiment, v.backend, v.kind, CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens, v.axes_json ->> '$.variant' AS variant,
        json_remove(v.axes_json, '$.variant', '$.tokens') AS rest, v.percent_of_roof,
        iif(v.metric = 'ns_per_token' AND v.experiment <> 'hash', 0.001, 1) AS scale, v.median, v.ci_lo, v.ci_hi
    FROM v_summary v JOIN points p USING (point_key)
    WHERE v.run_id = :run AND v.outcome = 'measured' AND p.is_roof = 0
        AND (v.experiment, v.metric) IN (VALUES ('hash', 'ns_per_token'), ('gather', 'ns_per_token'),
            ('project', 'us_per_token'), ('gate', 'ns_per_token'))
), picked AS (
    SELECT experiment, rest, row_number() OVER (PARTITION BY experiment
        ORDER BY count(DISTINCT tokens) DESC, count(*) DESC, rest) AS place
    FROM t GROUP BY experiment, rest
), numbers AS (
    SELECT t.*, scale * median AS each, scale * ci_lo AS lo, scale * ci_hi AS hi, expected_us(point_key) / tokens * iif(experiment = 'hash', 1000, 1) AS expected
    FROM t JOIN picked USING (experiment, rest)
    WHERE picked.place = 1 AND tokens IN (1, 4, 16, 256)
)
SELECT experiment || iif(experiment = 'hash', ', ns', ', us') AS operation, tokens,
    variant || iif(kind = 'measured', '', ' (' || kind || ')') AS variant, printf(iif(each < 1000, '%.3g', '%,d'), each) AS "per token",
    coalesce(printf(iif(lo < 1000, '%.3g', '%,d'), lo) || ' to ' || printf(iif(hi < 1000, '%.3g', '%,d'), hi), '-') AS "95 % interval",
    coalesce(printf('%.0f', percent_of_roof), '-') AS "% of roof", coalesce(printf(iif(expected < 1000, '%.3g', '%,d'), expected), '-') AS expected,
    coalesce(expected_why(point_key), '-') AS "because of"
FROM numbers
ORDER BY CASE experiment WHEN 'hash' THEN 1 WHEN 'gather' THEN 2 WHEN 'project' THEN 3 ELSE 4 END, tokens, backend, each;
