-- title: Gather by page size of the table: time per row
-- empty: this run holds no points of gather on two page sizes.
-- The CPU's fastest variant of each, CPU time of the busiest thread. What a row costs more on 4 KiB pages than on 2 MiB ones is the estimate of its page walks.
WITH t AS (
    SELECT v.point_key, v.kind, v.axes_json AS a, CAST(v.axes_json ->> '$.rows' AS INTEGER) AS rows, v.axes_json ->> '$.pages' AS pages,
        CAST(v.axes_json ->> '$.threads' AS INTEGER) AS threads,
        v.median, coalesce(v.ci_lo, v.median) AS lo, coalesce(v.ci_hi, v.median) AS hi, json_remove(v.axes_json, '$.pages', '$.rows', '$.threads', '$.variant') AS rest
    FROM v_summary v JOIN points p USING (point_key)
    WHERE v.run_id = :run AND v.experiment = 'gather' AND v.metric = 'cpu_us' AND v.outcome = 'measured' AND p.is_roof = 0 AND v.backend = 'cpu'
), best AS (
    SELECT *, row_number() OVER (PARTITION BY rows, pages, threads, kind ORDER BY median) AS place
    FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest HAVING count(DISTINCT pages) > 1 ORDER BY count(*) DESC, rest LIMIT 1)
), shown AS (
    SELECT best.*, (SELECT v.median FROM v_summary v WHERE v.run_id = :run AND v.point_key = best.point_key AND v.metric = 'logical_bytes') AS logical,
        (SELECT v.median FROM v_summary v WHERE v.run_id = :run AND v.point_key = best.point_key AND v.metric = 'huge_share') AS huge_share
    FROM best WHERE place = 1
)
SELECT pages || ' pages, ' || threads || iif(threads = 1, ' thread', ' threads') || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, pages, threads, rows,
    24.0 * rows * 264 AS about_bytes, 1e3 * median / (logical / 264) AS row_ns, 1e3 * lo / (logical / 264) AS lo, 1e3 * hi / (logical / 264) AS hi, huge_share,
    1e3 * (median - (SELECT h.median FROM shown h WHERE h.rows = shown.rows AND h.threads = shown.threads AND h.pages = '2m')) / (logical / 264) AS walk_ns,
    (SELECT count(*) FROM v_summary v WHERE v.run_id = :run AND v.experiment = 'gather' AND v.outcome = 'skipped' AND v.axes_json ->> '$.pages' = '1g') AS skipped_1g, point_key
FROM shown
WHERE a ->> '$.row_format' = 'fp8' AND a ->> '$.row_dims' = 256
ORDER BY threads, pages DESC, rows;
