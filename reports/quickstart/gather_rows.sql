-- title: Gather bandwidth against rows per head and heads K
-- The fastest kernel variant of each (K, rows per head), and the roof measured in the same block. Of the points
-- that differ in K and rows alone, the set with the most is taken.
WITH g AS (
    SELECT v.point_key, v.kind, v.axes_json, v.median, v.ci_lo, v.ci_hi, v.percent_of_roof,
        CAST(v.axes_json ->> '$.heads' AS INTEGER) AS heads,
        CAST(v.axes_json ->> '$.rows' AS INTEGER) AS rows_per_head,
        json_remove(v.axes_json, '$.heads', '$.rows', '$.variant') AS rest
    FROM v_summary v JOIN points p USING (point_key)
    WHERE v.run_id = :run AND v.experiment = 'gather' AND v.metric = 'gather_gbps' AND p.is_roof = 0
        AND v.outcome = 'measured'
), best AS (
    SELECT g.*, row_number() OVER (PARTITION BY heads, rows_per_head, kind ORDER BY median DESC) AS place
    FROM g
    WHERE rest = (SELECT rest FROM g GROUP BY rest
                  ORDER BY count(DISTINCT rows_per_head) DESC, count(*) DESC, rest LIMIT 1)
)
SELECT printf('K = %d', heads) || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series,
    heads, rows_per_head, median AS gbps, coalesce(ci_lo, median) AS gbps_lo, coalesce(ci_hi, median) AS gbps_hi,
    median * 100 / percent_of_roof AS roof_gbps, percent_of_roof,
    (SELECT w.median FROM v_summary w
     WHERE w.run_id = :run AND w.point_key = best.point_key AND w.metric = 'working_set_bytes') AS working_set_bytes,
    (SELECT m.cache_bytes FROM runs r JOIN machines m USING (machine_id) WHERE r.run_id = :run) AS cache_bytes,
    axes_json ->> '$.variant' AS variant, axes_json ->> '$.tokens' AS tokens, axes_json ->> '$.corpus' AS corpus,
    axes_json ->> '$.row_format' AS row_format, axes_json ->> '$.out' AS out, axes_json ->> '$.hold' AS hold,
    axes_json ->> '$.threads' AS threads, point_key
FROM best
WHERE place = 1
ORDER BY heads, kind, rows_per_head;
