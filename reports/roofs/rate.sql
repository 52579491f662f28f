-- title: Lines a second against independent chains
SELECT CASE WHEN bytes < 1048576 THEN printf('%d KiB', bytes / 1024) WHEN bytes < 1073741824 THEN printf('%d MiB', bytes / 1048576)
        ELSE printf('%.3g GiB', bytes / 1073741824.0) END
    || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series,
    bytes, chains, median AS gload, coalesce(ci_lo, median) AS gload_lo, coalesce(ci_hi, median) AS gload_hi, threads, pages, point_key
FROM (
    SELECT v.*, CAST(v.axes_json ->> '$.bytes' AS INTEGER) AS bytes, CAST(v.axes_json ->> '$.chains' AS INTEGER) AS chains,
        v.axes_json ->> '$.threads' AS threads, v.axes_json ->> '$.pages' AS pages,
        count(*) OVER (PARTITION BY v.axes_json ->> '$.bytes') AS steps
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'ladder' AND v.metric = 'gload_per_s' AND v.outcome = 'measured'
        AND v.axes_json ->> '$.access' = 'chains' AND v.axes_json ->> '$.line' = '64' AND v.axes_json ->> '$.threads' = 1
        AND v.axes_json ->> '$.pages' = '2m' AND v.axes_json ->> '$.pin' = 'none')
WHERE steps > 2
ORDER BY bytes, kind, chains;
