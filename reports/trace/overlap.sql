-- Fetch, stall and hidden fraction by layer, summed over the steps of the trace; unions by gaps and islands.
-- empty: No point of this run was traced, or none of its traces holds a fetch.
WITH seen AS (
    SELECT point_key, step, layer, name, start_ns, end_ns, bytes,
        max(end_ns) OVER (PARTITION BY point_key, step, layer, name ORDER BY start_ns, end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
    FROM trace_events WHERE kind = 'range' AND name IN ('fetch', 'wait')
), unions AS (
    SELECT point_key, step, layer,
        sum(max(end_ns - max(start_ns, ifnull(reached, start_ns)), 0)) FILTER (WHERE name = 'fetch') AS fetch_ns,
        ifnull(sum(max(end_ns - max(start_ns, ifnull(reached, start_ns)), 0)) FILTER (WHERE name = 'wait'), 0) AS stall_ns,
        sum(bytes) FILTER (WHERE name = 'fetch') AS bytes
    FROM seen GROUP BY point_key, step, layer
)
SELECT substr(u.point_key, 1, 8) AS point,
    (SELECT group_concat(a.axis || '=' || a.value, ' ') FROM axis_values a
     WHERE a.point_key = u.point_key AND NOT a.is_default) AS axes,
    u.layer, count(*) AS steps, printf(iif(sum(u.fetch_ns) < 1e7, '%.4g', '%,d'), sum(u.fetch_ns) / 1e3) AS "fetch (us)",
    printf(iif(sum(u.stall_ns) < 1e7, '%.4g', '%,d'), sum(u.stall_ns) / 1e3) AS "stall (us)",
    iif(sum(u.fetch_ns) > 0, printf('%.3f', max(1 - 1.0 * sum(u.stall_ns) / sum(u.fetch_ns), 0)), NULL) AS hidden,
    iif(sum(u.bytes) > 0, printf('%.3g', 1.0 * sum(u.bytes) / sum(u.fetch_ns)), NULL) AS "GB/s"
FROM unions u WHERE u.fetch_ns > 0
GROUP BY u.point_key, u.layer ORDER BY axes, u.point_key, u.layer;
