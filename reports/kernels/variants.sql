-- title: Kernel variants: percent of the roof measured beside each
-- Of each operation the points that differ in tokens and variant alone, the set with the most; 16 and 256 tokens.
WITH t AS (
    SELECT v.point_key, v.experiment, v.backend, v.kind, CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens,
        v.axes_json ->> '$.variant' AS variant, json_remove(v.axes_json, '$.variant', '$.tokens') AS rest, v.median,
        v.ci_lo, v.ci_hi, v.percent_of_roof
    FROM v_summary v JOIN points p USING (point_key)
    WHERE v.run_id = :run AND v.outcome = 'measured' AND p.is_roof = 0 AND v.kind = 'measured'
        AND (v.experiment, v.metric) IN (VALUES ('hash', 'ns_per_token'), ('gather', 'ns_per_token'),
            ('project', 'us_per_token'), ('gate', 'ns_per_token'))
), picked AS (
    SELECT experiment, rest, row_number() OVER (PARTITION BY experiment
        ORDER BY count(DISTINCT tokens) DESC, count(*) DESC, rest) AS place
    FROM t GROUP BY experiment, rest
)
SELECT printf('%d tokens', tokens) AS series, tokens, experiment || ' ' || variant AS name,
    dense_rank() OVER (ORDER BY CASE experiment WHEN 'hash' THEN 1 WHEN 'gather' THEN 2 WHEN 'project' THEN 3 ELSE 4 END, variant) AS place,
    percent_of_roof AS percent, percent_of_roof * median / coalesce(ci_hi, median) AS percent_lo,
    percent_of_roof * median / coalesce(ci_lo, median) AS percent_hi, experiment, backend, variant, median AS per_token,
    CASE WHEN percent_of_roof IS NULL THEN '' ELSE printf('%.0f', percent_of_roof) END AS label, point_key
FROM t JOIN picked USING (experiment, rest)
WHERE picked.place = 1 AND tokens IN (16, 256) AND percent_of_roof IS NOT NULL
ORDER BY tokens, place;
