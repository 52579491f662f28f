-- Layers of imported traces: medians over their steps.
-- empty: This database holds no imported trace.
WITH v AS (
    SELECT p.point_key, p.axes_json, v.metric, v.value,
        row_number() OVER (PARTITION BY p.point_key, v.metric ORDER BY v.value) AS place,
        count(*) OVER (PARTITION BY p.point_key, v.metric) AS n
    FROM points p JOIN sample_values v USING (point_key)
    WHERE p.kind = 'imported' AND v.metric IN ('fetch_us', 'stall_us', 'hidden', 'gather_gbps', 'wait_read_us',
        'wait_collective_us', 'wait_hash_us', 'wait_queue_us')
), m AS (
    SELECT point_key, axes_json, metric, max(n) AS n, avg(value) AS median FROM v
    WHERE place IN ((n + 1) / 2, (n + 2) / 2) GROUP BY point_key, metric
), t AS (
    SELECT point_key, axes_json, max(n) AS steps, max(median) FILTER (WHERE metric = 'fetch_us') AS fetch,
        max(median) FILTER (WHERE metric = 'stall_us') AS stall, max(median) FILTER (WHERE metric = 'hidden') AS hidden,
        max(median) FILTER (WHERE metric = 'gather_gbps') AS gbps,
        max(median) FILTER (WHERE metric = 'wait_read_us') AS read_us,
        max(median) FILTER (WHERE metric = 'wait_collective_us') AS collective_us,
        max(median) FILTER (WHERE metric = 'wait_hash_us') AS hash_us,
        max(median) FILTER (WHERE metric = 'wait_queue_us') AS queue_us
    FROM m GROUP BY point_key
)
SELECT axes_json ->> '$.file' AS file, axes_json ->> '$.device' AS device, axes_json ->> '$.layer' AS layer, steps,
    printf('%.4g', fetch) AS "fetch (us)", printf('%.4g', stall) AS "stall (us)", printf('%.3f', hidden) AS hidden,
    printf('%.4g', read_us) AS "reading", printf('%.4g', collective_us) AS "collective", printf('%.4g', hash_us) AS "hash",
    printf('%.4g', queue_us) AS "queue", iif(gbps IS NULL, NULL, printf('%.3g', gbps)) AS "GB/s"
FROM t WHERE fetch IS NOT NULL
ORDER BY file, device, layer;
