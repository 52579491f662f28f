-- title: Hidden share of the fetch, ours beside imported traces
-- A mark per point and layer: sums over the steps of a trace of this run, and of all traces imported into this database.
WITH seen AS (
    SELECT point_key, step, layer, name, start_ns, end_ns,
        max(end_ns) OVER (PARTITION BY point_key, step, layer, name ORDER BY start_ns, end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
    FROM trace_events WHERE kind = 'range' AND name IN ('fetch', 'wait')
), unions AS (
    SELECT point_key, step, layer,
        sum(max(end_ns - max(start_ns, ifnull(reached, start_ns)), 0)) FILTER (WHERE name = 'fetch') AS fetch_ns,
        ifnull(sum(max(end_ns - max(start_ns, ifnull(reached, start_ns)), 0)) FILTER (WHERE name = 'wait'), 0) AS stall_ns
    FROM seen GROUP BY point_key, step, layer
), imported AS (
    SELECT p.point_key, p.axes_json ->> '$.file' AS file, p.axes_json ->> '$.layer' AS layer, v.pair,
        max(v.value) FILTER (WHERE v.metric = 'fetch_us') AS fetch_us, max(v.value) FILTER (WHERE v.metric = 'stall_us') AS stall_us
    FROM points p JOIN sample_values v USING (point_key)
    WHERE p.kind = 'imported' AND p.axes_json ->> '$.layer' IS NOT NULL AND v.metric IN ('fetch_us', 'stall_us')
    GROUP BY p.point_key, v.pair
)
SELECT ifnull((SELECT group_concat(a.axis || '=' || a.value, ' ') FROM axis_values a
        WHERE a.point_key = u.point_key AND NOT a.is_default), 'defaults') AS series,
    u.layer, count(*) AS steps, avg(u.fetch_ns) / 1e3 AS fetch_us,
    max(1 - 1.0 * sum(u.stall_ns) / sum(u.fetch_ns), 0) AS hidden, 0 AS imported, u.point_key
FROM unions u WHERE u.fetch_ns > 0
GROUP BY u.point_key, u.layer
UNION ALL
SELECT file || ' (imported)', layer, count(*), avg(fetch_us), max(1 - sum(stall_us) / sum(fetch_us), 0), 1, point_key
FROM imported WHERE fetch_us > 0 AND stall_us IS NOT NULL
GROUP BY point_key
ORDER BY imported, series, layer;
