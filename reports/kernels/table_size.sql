-- title: Gather bandwidth against table size
-- Every variant and the roof measured beside it; of the points that differ in rows and variant alone, the set with the most.
WITH g AS (
    SELECT v.point_key, v.backend, v.kind, v.median, v.ci_lo, v.ci_hi, v.percent_of_roof, v.axes_json ->> '$.variant' AS variant,
        CAST(v.axes_json ->> '$.rows' AS INTEGER) AS rows_per_head, v.axes_json ->> '$.tokens' AS tokens,
        v.axes_json ->> '$.threads' AS threads, v.axes_json ->> '$.out' AS out,
        json_remove(v.axes_json, '$.rows', '$.variant') AS rest
    FROM v_summary v JOIN points p USING (point_key)
    WHERE v.run_id = :run AND v.experiment = 'gather' AND v.metric = 'gather_gbps' AND p.is_roof = 0 AND v.outcome = 'measured'
), set_of AS (
    SELECT * FROM g WHERE rest = (SELECT rest FROM g GROUP BY rest ORDER BY count(DISTINCT rows_per_head) DESC, count(*) DESC, rest LIMIT 1)
), sized AS (
    SELECT s.*, (SELECT w.median FROM v_summary w WHERE w.run_id = :run AND w.point_key = s.point_key AND w.metric = 'working_set_bytes')
        AS working_set_bytes, row_number() OVER (PARTITION BY rows_per_head, backend, kind ORDER BY median DESC) AS place
    FROM set_of s
)
SELECT series, of_roof, backend, rows_per_head, working_set_bytes, gbps, gbps_lo, gbps_hi, percent_of_roof, tokens, threads, out,
    (SELECT coalesce((SELECT c.knee_bytes FROM v_cache_knee c WHERE c.machine_id = m.machine_id AND c.knee_bytes IS NOT NULL
         ORDER BY c.pages = '2m' DESC, c.pages LIMIT 1), m.cache_bytes)
     FROM runs r JOIN machines m USING (machine_id) WHERE r.run_id = :run) AS cache_bytes, point_key
FROM (
    SELECT variant || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, 0 AS of_roof, backend, rows_per_head, working_set_bytes,
        median AS gbps, coalesce(ci_lo, median) AS gbps_lo, coalesce(ci_hi, median) AS gbps_hi, percent_of_roof, tokens, threads, out, point_key
    FROM sized
    UNION ALL
    SELECT 'roof' || iif(backend = 'cpu', '', ', ' || backend) || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END, 1, backend, rows_per_head, working_set_bytes, median * 100 / percent_of_roof, median * 100 / percent_of_roof,
        median * 100 / percent_of_roof, 100, tokens, threads, out, point_key
    FROM sized WHERE place = 1 AND percent_of_roof > 0
)
ORDER BY of_roof, series, rows_per_head;
