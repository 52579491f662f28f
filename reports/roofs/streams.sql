-- title: Streams: bytes loaded and stored a second
SELECT v.axes_json ->> '$.pass' || iif(v.axes_json ->> '$.store' = 'nt', ', non-temporal', '') AS what,
    v.axes_json ->> '$.threads' || ' thread' || iif(v.axes_json ->> '$.threads' = 1, '', 's') AS series,
    dense_rank() OVER (ORDER BY v.axes_json ->> '$.pass', v.axes_json ->> '$.store') AS place,
    CAST(v.axes_json ->> '$.threads' AS INTEGER) AS threads, v.axes_json ->> '$.bytes' AS bytes,
    v.median AS gbps, coalesce(v.ci_lo, v.median) AS gbps_lo, coalesce(v.ci_hi, v.median) AS gbps_hi, v.point_key
FROM v_summary v
WHERE v.run_id = :run AND v.experiment = 'stream' AND v.metric = 'wall_gbps' AND v.outcome = 'measured'
    AND v.axes_json ->> '$.pages' = '2m' AND v.axes_json ->> '$.pin' = 'none'
    AND v.axes_json ->> '$.bytes' = (SELECT max(axes_json ->> '$.bytes') FROM v_summary WHERE run_id = :run AND experiment = 'stream')
ORDER BY threads, place;
