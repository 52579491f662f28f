-- One line per row format and kernel variant.
-- empty: this run holds no points of the experiment format.
SELECT v.axes_json ->> '$.row_format' AS format, (v.axes_json ->> '$.variant') || iif(v.kind = 'measured', '', ' (' || v.kind || ')') AS variant,
    printf('%.1f', max(median) FILTER (WHERE metric = 'row_ns')) AS "ns per row", printf('%d', max(median) FILTER (WHERE metric = 'row_bytes')) AS "row bytes",
    printf('%.0f', max(median) FILTER (WHERE metric = 'line_bytes_per_row')) AS "line bytes per row",
    coalesce(printf('%.3g %%', 100 * max(median) FILTER (WHERE metric = 'row_error')), '-') AS "row error",
    coalesce(printf('%.2g', max(median) FILTER (WHERE metric = 'gate_drift')), '-') AS "gate drift",
    coalesce(printf('%.2g', max(median) FILTER (WHERE metric = 'gate_noise')), '-') AS "noise floor"
FROM v_summary v JOIN points p USING (point_key)
WHERE v.run_id = :run AND v.experiment = 'format' AND v.outcome = 'measured' AND p.is_roof = 0
GROUP BY v.point_key
ORDER BY max(median) FILTER (WHERE metric = 'row_bytes'), format, variant;
