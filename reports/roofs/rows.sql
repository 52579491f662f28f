-- title: Time per line: chains, reading alone, and the roof of the gather
-- The fastest of each kind in its block (all of a block walk the same memory in the same worker).
WITH t AS (
    SELECT v.point_key, v.kind, v.median, v.ci_lo, v.ci_hi, v.axes_json ->> '$.access' AS access,
        CAST(v.axes_json ->> '$.bytes' AS INTEGER) AS bytes, v.axes_json ->> '$.line' AS line,
        v.axes_json ->> '$.threads' AS threads, v.axes_json ->> '$.pages' AS pages, v.axes_json ->> '$.tokens' AS tokens,
        v.axes_json ->> '$.out' AS out,
        json_remove(v.axes_json, '$.access') AS shape
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'ladder' AND v.metric = 'ns_per_load' AND v.outcome = 'measured'
        AND v.axes_json ->> '$.access' <> 'chains'
), kinds AS (
    SELECT *, CASE WHEN access LIKE 'chains%' THEN 'best chains' WHEN access LIKE 'read%' THEN 'reading alone'
        ELSE 'gather roof' END AS what
    FROM t
), best AS (
    SELECT *, row_number() OVER (PARTITION BY shape, what ORDER BY median) AS place FROM kinds
)
SELECT what AS series, printf('%s, %s B, %s tokens, %s, %s thread%s', CASE WHEN bytes < 1073741824 THEN printf('%d MiB', bytes / 1048576)
        ELSE printf('%.3g GiB', bytes / 1073741824.0) END, line, tokens, pages, threads, iif(threads = 1, '', 's')) AS shape_name,
    access, dense_rank() OVER (ORDER BY threads, bytes, line, pages DESC, CAST(tokens AS INTEGER) DESC, shape) AS place,
    median AS ns, coalesce(ci_lo, median) AS ns_lo, coalesce(ci_hi, median) AS ns_hi, out, point_key
FROM best
WHERE place = 1
ORDER BY place, CASE what WHEN 'best chains' THEN 1 WHEN 'reading alone' THEN 2 ELSE 3 END;
