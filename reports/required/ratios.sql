-- Speed over the reference measured in the same block: median of paired ratios of CPU time and its 95 % interval. Of several kernels
-- for the same instructions the fastest. "undecided": the interval holds what is required. The chain runs the fastest kernel of a
-- stage, on bf16: only that one's ratio can be weighed with the shares that the chain's stages have.
-- empty: This run holds none of the shapes that a ratio is required for (sweeps/required.sweep has them).
WITH want(experiment, family, least, most, required, goal) AS (VALUES
    ('hash', 'portable', 256, 1e9, 4, NULL), ('hash', 'AVX2', 256, 1e9, 10, NULL), ('hash', 'AVX-512', 256, 1e9, 15, 20),
    ('gather', 'AVX2', 4, 1e9, 0.75, 0.9), ('gather', 'AVX-512', 4, 1e9, 0.75, 0.9),
    ('project', 'AVX-512', 1, 1, 1.7, 1.9), ('project', 'AVX-512', 2, 4, 1.4, NULL), ('project', 'AVX-512', 8, 8, 1.7, 1.9),
    ('project', 'AVX-512', 16, 16, 1.3, NULL), ('project', 'AVX-512', 32, 32, 1.2, NULL), ('project', 'AVX-512', 64, 64, 1, NULL),
    ('project', 'AVX-512', 256, 1e9, 1, 1.1),
    ('gate', 'AVX2', 1, 1e9, 0.6, 0.75), ('gate', 'AVX-512', 1, 1e9, 0.6, 0.75)
), here AS (
    SELECT p.point_key, l.block_id, p.experiment, json_remove(p.axes_json, '$.variant') AS shape, p.axes_json ->> '$.variant' AS variant,
        CAST(p.axes_json ->> '$.tokens' AS INTEGER) AS tokens, CAST(p.axes_json ->> '$.threads' AS INTEGER) AS threads,
        p.axes_json ->> '$.out' AS out, p.axes_json ->> '$.preset' AS preset,
        CASE WHEN p.axes_json ->> '$.variant' LIKE 'avx512%' THEN 'AVX-512' WHEN p.axes_json ->> '$.variant' LIKE 'avx2%' THEN 'AVX2'
            ELSE 'portable' END AS family
    FROM run_points l JOIN points p USING (point_key) JOIN block_points b USING (block_id, point_key)
    WHERE l.run_id = :run AND p.backend = 'cpu' AND p.kind = 'measured' AND p.is_roof = 0 AND b.outcome = 'measured'
        AND p.experiment IN (SELECT experiment FROM want) AND coalesce(p.axes_json ->> '$.row_format', 'fp8') = 'fp8'
        AND coalesce(p.axes_json ->> '$.cache', 'rotate') = 'rotate' AND coalesce(p.axes_json ->> '$.out', 'bf16') <> 'fp8'
        AND (p.experiment <> 'gather' OR CAST(p.axes_json ->> '$.rows' AS INTEGER) = (SELECT max(CAST(q.axes_json ->> '$.rows' AS INTEGER))
            FROM run_points m JOIN points q USING (point_key) WHERE m.run_id = :run AND q.experiment = 'gather'))
), judged AS (
    SELECT here.*, want.required, want.goal, CASE here.experiment
        WHEN 'hash' THEN (SELECT n.point_key FROM here n WHERE n.block_id = here.block_id AND n.shape = here.shape AND n.variant = 'naive')
        ELSE (SELECT f.roof_point_key FROM roofs f JOIN points q ON q.point_key = f.roof_point_key
            WHERE f.block_id = here.block_id AND q.backend = 'cpu' AND json_remove(q.axes_json, '$.variant') = here.shape) END AS reference
    FROM here JOIN want ON want.experiment = here.experiment AND want.family = here.family AND here.tokens BETWEEN want.least AND want.most
    WHERE here.variant <> 'naive'
), pairs AS (
    SELECT j.point_key, r.cpu_ns * 1.0 / r.inner_iterations * s.inner_iterations / s.cpu_ns AS ratio
    FROM judged j
    JOIN samples s ON s.block_id = j.block_id AND s.point_key = j.point_key AND s.traced = 0 AND s.cpu_ns > 0
    JOIN samples r ON r.block_id = j.block_id AND r.point_key = j.reference AND r.segment = s.segment AND r.pair = s.pair AND r.traced = 0
), placed AS (
    SELECT point_key, ratio, row_number() OVER (PARTITION BY point_key ORDER BY ratio) AS place, count(*) OVER (PARTITION BY point_key) AS n
    FROM pairs
), medians AS (
    SELECT x.point_key, x.n, avg(x.ratio) FILTER (WHERE x.place IN ((x.n + 1) / 2, (x.n + 2) / 2)) AS ratio,
        max(x.ratio) FILTER (WHERE x.place = m.lo) AS lo, max(x.ratio) FILTER (WHERE x.place = m.hi) AS hi
    FROM placed x LEFT JOIN median_ranks m ON m.n = x.n
    GROUP BY x.point_key
), best AS (
    SELECT j.*, m.n, m.ratio, coalesce(m.lo, m.ratio) AS lo, coalesce(m.hi, m.ratio) AS hi, row_number() OVER (
        PARTITION BY j.experiment, j.family, j.tokens, j.threads, j.out ORDER BY m.ratio DESC, j.point_key) AS first,
        row_number() OVER (PARTITION BY j.experiment, j.tokens, j.threads, j.out ORDER BY m.ratio DESC, j.point_key) AS fastest
    FROM judged j JOIN medians m USING (point_key)
)
SELECT experiment || coalesce(' to ' || out, '') AS operation, tokens, threads, variant AS kernel,
    CASE WHEN experiment = 'hash' THEN 'naive' WHEN experiment = 'project' THEN 'library product' ELSE 'roof' END AS reference,
    printf('%.3g', ratio) AS ratio, printf('%.3g to %.3g', lo, hi) AS "95 % interval", n AS pairs, printf('%g', required) AS required,
    iif(goal IS NULL, '-', printf('%g', goal)) AS goal,
    CASE WHEN lo >= goal THEN 'yes, and the goal' WHEN lo >= required THEN 'yes' WHEN hi >= required THEN 'undecided' ELSE 'no' END AS met,
    coalesce(iif(fastest = 1 AND coalesce(out, 'bf16') = 'bf16', chain_worth(experiment, preset, tokens, threads, ratio), NULL), '-') AS "worth for the chain"
FROM best
WHERE first = 1
ORDER BY CASE experiment WHEN 'hash' THEN 1 WHEN 'gather' THEN 2 WHEN 'project' THEN 3 ELSE 4 END, out, family, threads, tokens;
