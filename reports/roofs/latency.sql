-- title: Latency of a random load against the working set
-- One dependent chain of 64-byte lines on one thread; the cache's size as in v_cache_knee (bench/core/knee.sql).
SELECT v.axes_json ->> '$.pages' || ' pages' || CASE v.kind WHEN 'measured' THEN '' ELSE ' (' || v.kind || ')' END AS series,
    v.axes_json ->> '$.pages' AS pages, CAST(v.axes_json ->> '$.bytes' AS INTEGER) AS bytes, v.median AS ns,
    coalesce(v.ci_lo, v.median) AS ns_lo, coalesce(v.ci_hi, v.median) AS ns_hi,
    (SELECT h.median FROM v_summary h
     WHERE h.run_id = :run AND h.point_key = v.point_key AND h.metric = 'huge_share') AS huge_share,
    (SELECT c.knee_bytes FROM v_cache_knee c
     WHERE c.machine_id = p.machine_id AND c.knee_bytes IS NOT NULL
     ORDER BY c.pages = '2m' DESC, c.pages LIMIT 1) AS knee_bytes,
    (SELECT m.cache_bytes FROM machines m WHERE m.machine_id = p.machine_id) AS os_bytes, v.point_key
FROM v_summary v JOIN points p USING (point_key)
WHERE v.run_id = :run AND v.experiment = 'ladder' AND v.metric = 'ns_per_load' AND v.outcome = 'measured'
    AND v.axes_json ->> '$.access' = 'chains' AND v.axes_json ->> '$.chains' = 1 AND v.axes_json ->> '$.line' = '64'
    AND v.axes_json ->> '$.threads' = 1 AND v.axes_json ->> '$.pin' = 'none'
ORDER BY pages, v.kind, bytes;
