-- title: Gather bandwidth against rows per head and heads K
-- The fastest kernel variant of each (K, rows per head) and backend, and the roof measured in the same block. Of the points
-- that differ in K and rows alone, the set with the most is taken. The cache's size is the knee of the latency ladder
-- where the database has one of this machine (v_cache_knee: bench/core/knee.sql), else what the operating system says.
WITH cache AS (
    SELECT m.cache_bytes AS os_bytes,
        (SELECT c.knee_bytes FROM v_cache_knee c
         WHERE c.machine_id = m.machine_id AND c.knee_bytes IS NOT NULL
         ORDER BY c.pages = '2m' DESC, c.pages LIMIT 1) AS knee_bytes
    FROM runs r JOIN machines m USING (machine_id)
    WHERE r.run_id = :run
), g AS (
    SELECT v.point_key, v.backend, v.kind, v.axes_json, v.median, v.ci_lo, v.ci_hi, v.percent_of_roof,
        CAST(v.axes_json ->> '$.heads' AS INTEGER) AS heads,
        CAST(v.axes_json ->> '$.rows' AS INTEGER) AS rows_per_head,
        json_remove(v.axes_json, '$.heads', '$.rows', '$.variant') AS rest
    FROM v_summary v JOIN points p USING (point_key)
    WHERE v.run_id = :run AND v.experiment = 'gather' AND v.metric = 'gather_gbps' AND p.is_roof = 0
        AND v.outcome = 'measured'
), best AS (
    SELECT g.*, row_number() OVER (PARTITION BY heads, rows_per_head, backend, kind ORDER BY median DESC) AS place
    FROM g
    WHERE rest = (SELECT rest FROM g GROUP BY rest
                  ORDER BY count(DISTINCT rows_per_head) DESC, count(*) DESC, rest LIMIT 1)
)
SELECT printf('K = %d', heads) || iif(backend = 'cpu', '', ', ' || backend) || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series,
    heads, backend, kind, rows_per_head, median AS gbps, coalesce(ci_lo, median) AS gbps_lo, coalesce(ci_hi, median) AS gbps_hi,
    median * 100 / percent_of_roof AS roof_gbps, percent_of_roof,
    (SELECT w.median FROM v_summary w
     WHERE w.run_id = :run AND w.point_key = best.point_key AND w.metric = 'working_set_bytes') AS working_set_bytes,
    (SELECT coalesce(knee_bytes, os_bytes) FROM cache) AS cache_bytes,
    (SELECT iif(knee_bytes IS NULL, 'cache (system)', 'cache (knee)') FROM cache)
        AS cache_label,
    (SELECT knee_bytes FROM cache) AS knee_bytes, (SELECT os_bytes FROM cache) AS os_cache_bytes,
    axes_json ->> '$.variant' AS variant, axes_json ->> '$.tokens' AS tokens, axes_json ->> '$.corpus' AS corpus,
    axes_json ->> '$.row_format' AS row_format, axes_json ->> '$.out' AS out, axes_json ->> '$.hold' AS hold,
    axes_json ->> '$.threads' AS threads, point_key
FROM best
WHERE place = 1
ORDER BY backend, heads, kind, rows_per_head;
