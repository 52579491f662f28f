-- title: Roofline of the chain
-- The fastest variant of each operation and number of tokens. Arithmetic and bytes follow from the shape (the kernel's
-- cost()). The slope is the CPU's read stream of this run, the ceiling the fastest projection of any of its variants in it.
WITH p AS (
    SELECT v.point_key, v.experiment, v.backend, v.kind, CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens,
        v.axes_json ->> '$.variant' AS variant, json_remove(v.axes_json, '$.variant', '$.tokens') AS rest,
        max(v.median) FILTER (WHERE v.metric = 'cpu_us') AS us, max(v.ci_lo) FILTER (WHERE v.metric = 'cpu_us') AS us_lo,
        max(v.ci_hi) FILTER (WHERE v.metric = 'cpu_us') AS us_hi, max(v.median) FILTER (WHERE v.metric = 'flops') AS flops,
        max(v.median) FILTER (WHERE v.metric = 'moved_bytes') AS bytes, max(q.is_roof) AS is_roof
    FROM v_summary v JOIN points q USING (point_key)
    WHERE v.run_id = :run AND v.experiment IN ('gather', 'project', 'gate') AND v.outcome = 'measured'
    GROUP BY v.point_key
), picked AS (
    SELECT experiment, rest, row_number() OVER (PARTITION BY experiment
        ORDER BY count(DISTINCT tokens) DESC, count(*) DESC, rest) AS place
    FROM p WHERE NOT is_roof GROUP BY experiment, rest
), best AS (
    SELECT p.*, row_number() OVER (PARTITION BY experiment, backend, kind, tokens ORDER BY us) AS fastest
    FROM p JOIN picked USING (experiment, rest)
    WHERE picked.place = 1 AND NOT is_roof AND flops > 0
)
SELECT experiment || iif(backend = 'cpu', '', ', ' || backend) || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series,
    experiment, backend, tokens, variant,
    flops / bytes AS intensity, flops / us / 1000 AS gflops, flops / coalesce(us_hi, us) / 1000 AS gflops_lo,
    flops / coalesce(us_lo, us) / 1000 AS gflops_hi, bytes / us / 1000 AS gbps,
    (SELECT max(s.median) FROM v_summary s WHERE s.run_id = :run AND s.experiment = 'stream' AND s.metric = 'gbps'
         AND s.axes_json ->> '$.pass' = 'read' AND s.axes_json ->> '$.threads' = 1) AS stream_gbps,
    (SELECT max(flops / us / 1000) FROM p WHERE experiment = 'project' AND backend = 'cpu') AS peak_gflops,
    CASE WHEN tokens IN (min(tokens) OVER (PARTITION BY experiment, backend), max(tokens) OVER (PARTITION BY experiment, backend))
        THEN tokens ELSE '' END AS label, point_key
FROM best
WHERE fastest = 1
ORDER BY experiment, backend, kind, tokens;
