-- title: Random rows against table size, by page size
-- fp8 rows of 256 + 8 bytes read with ids known in advance, and read and stored by a roof of the gather.
SELECT CASE WHEN v.axes_json ->> '$.access' LIKE 'read%' THEN 'read' ELSE 'read and store' END || ', ' || (v.axes_json ->> '$.pages') || ' pages'
        || CASE v.kind WHEN 'measured' THEN '' ELSE ' (' || v.kind || ')' END AS series,
    v.axes_json ->> '$.access' AS access, v.axes_json ->> '$.pages' AS pages, CAST(v.axes_json ->> '$.bytes' AS INTEGER) AS bytes,
    64 * v.median AS gbps, 64 * coalesce(v.ci_lo, v.median) AS gbps_lo, 64 * coalesce(v.ci_hi, v.median) AS gbps_hi,
    (SELECT h.median FROM v_summary h WHERE h.run_id = :run AND h.point_key = v.point_key AND h.metric = 'huge_share') AS huge_share, v.point_key
FROM v_summary v
WHERE v.run_id = :run AND v.experiment = 'ladder' AND v.metric = 'gload_per_s' AND v.outcome = 'measured'
    AND v.axes_json ->> '$.access' NOT LIKE 'chains%' AND v.axes_json ->> '$.line' = '256+8' AND v.axes_json ->> '$.threads' = 1
    AND v.axes_json ->> '$.tokens' = 256
    AND v.axes_json ->> '$.access' IN (SELECT axes_json ->> '$.access' FROM v_summary WHERE run_id = :run AND experiment = 'ladder'
        GROUP BY axes_json ->> '$.access' HAVING count(DISTINCT axes_json ->> '$.bytes') > 3)
ORDER BY access, pages DESC, bytes;
