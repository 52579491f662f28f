-- Time per token of every variant and percent of the roof measured beside it, microseconds of CPU time (nanoseconds for hash), one thread.
-- empty: This run holds no kernel at 16 or 256 tokens.
WITH t AS (
    SELECT v.point_key, v.experiment, CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens, v.axes_json ->> '$.variant' AS variant,
        json_remove(v.axes_json, '$.variant', '$.tokens') AS rest, p.is_roof, v.percent_of_roof,
        v.median / iif(v.metric = 'ns_per_token' AND v.experiment <> 'hash', 1000, 1) AS each,
        v.ci_lo / iif(v.metric = 'ns_per_token' AND v.experiment <> 'hash', 1000, 1) AS lo,
        v.ci_hi / iif(v.metric = 'ns_per_token' AND v.experiment <> 'hash', 1000, 1) AS hi
    FROM v_summary v JOIN points p USING (point_key)
    WHERE v.run_id = :run AND v.outcome = 'measured' AND p.is_roof = 0
        AND (v.experiment, v.metric) IN (VALUES ('hash', 'ns_per_token'), ('gather', 'ns_per_token'),
            ('project', 'us_per_token'), ('gate', 'ns_per_token'))
), picked AS (
    SELECT experiment, rest, row_number() OVER (PARTITION BY experiment
        ORDER BY count(DISTINCT tokens) DESC, count(*) DESC, rest) AS place
    FROM t GROUP BY experiment, rest
), cells AS (
    SELECT experiment, variant, tokens, printf(iif(each < 1000, '%.3g', '%,d'), each)
        || iif(lo IS NULL OR hi IS NULL, '', ' (' || printf(iif(lo < 1000, '%.3g', '%,d'), lo) || ' to '
            || printf(iif(hi < 1000, '%.3g', '%,d'), hi) || ')')
        || iif(percent_of_roof IS NULL, '', printf(', %.0f %%', percent_of_roof)) AS cell
    FROM t JOIN picked USING (experiment, rest)
    WHERE picked.place = 1
)
SELECT experiment || iif(experiment = 'hash', ', ns', ', us') AS operation, variant,
    coalesce(max(cell) FILTER (WHERE tokens = 1), '-') AS "1 token", coalesce(max(cell) FILTER (WHERE tokens = 4), '-') AS "4 tokens",
    coalesce(max(cell) FILTER (WHERE tokens = 16), '-') AS "16 tokens", coalesce(max(cell) FILTER (WHERE tokens = 256), '-') AS "256 tokens"
FROM cells
GROUP BY experiment, variant
ORDER BY CASE experiment WHEN 'hash' THEN 1 WHEN 'gather' THEN 2 WHEN 'project' THEN 3 ELSE 4 END, variant;
