-- Points of one run side by side with all their metrics; figures choose run_id = :run. source: where rows come from, cold where direct
-- reads say no more; place puts the nearest first; made: another backend than the CPU, another kind of number than measured.
CREATE TEMP VIEW fetches AS WITH points AS (
    SELECT run_id, experiment, point_key, backend, kind, axes_json AS a, axes_json ->> '$.store' AS store, coalesce(axes_json ->> '$.io', 'buffered') AS io,
        axes_json ->> '$.residency' AS residency, metric, median, coalesce(ci_lo, median) AS lo, coalesce(ci_hi, median) AS hi
    FROM v_summary WHERE experiment IN ('tier', 'prefetch') AND outcome = 'measured'
)
SELECT run_id, experiment, point_key, a, store, io, residency, iif(backend = 'cpu', '', ', ' || backend) || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS made,
    store || CASE WHEN store = 'memory' THEN '' ELSE iif(io = 'direct', ' direct', '') || iif(io = 'direct' AND residency = 'cold', '', ' ' || residency) END AS source,
    iif(store = 'memory', 0, iif(io = 'direct', 3 + (residency <> 'cold'), iif(residency = 'warm', 1, 2))) AS place, json_group_object(metric, json_array(median, lo, hi)) AS m
FROM points GROUP BY run_id, point_key;
