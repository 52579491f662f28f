-- What is required of stores and prefetcher, as measured in this run. Wall time, medians of pairs within one block with their 95 %
-- interval; of prefetching, the cost of steps whose fetch alone is shorter than their window.
-- empty: This run holds neither a row cache that has all rows beside the memory store nor a fetch shorter than its window.
WITH here AS (
    SELECT p.point_key, l.block_id, p.axes_json AS a, json_remove(p.axes_json, '$.policy') AS rest
    FROM run_points l JOIN points p USING (point_key) JOIN block_points b USING (block_id, point_key)
    WHERE l.run_id = :run AND p.experiment = 'tier' AND p.kind = 'measured' AND b.outcome = 'measured'
), pairs AS (
    SELECT c.point_key, o.wall_ns * 1.0 / o.inner_iterations * s.inner_iterations / s.wall_ns AS ratio
    FROM here c JOIN here m ON m.block_id = c.block_id AND m.rest = c.rest AND m.a ->> '$.policy' = 'none'
    JOIN samples s ON s.block_id = c.block_id AND s.point_key = c.point_key AND s.traced = 0 AND s.wall_ns > 0
    JOIN samples o ON o.block_id = m.block_id AND o.point_key = m.point_key AND o.segment = s.segment AND o.pair = s.pair AND o.traced = 0
    WHERE c.a ->> '$.store' = 'memory' AND c.a ->> '$.policy' <> 'none'
        AND (SELECT v.median FROM v_summary v WHERE v.run_id = :run AND v.point_key = c.point_key AND v.metric = 'hit_rate') = 1
), placed AS (
    SELECT point_key, ratio, row_number() OVER (PARTITION BY point_key ORDER BY ratio) AS place, count(*) OVER (PARTITION BY point_key) AS n
    FROM pairs
), cached AS (
    SELECT x.point_key, x.n, avg(x.ratio) FILTER (WHERE x.place IN ((x.n + 1) / 2, (x.n + 2) / 2)) AS ratio,
        max(x.ratio) FILTER (WHERE x.place = r.lo) AS lo, max(x.ratio) FILTER (WHERE x.place = r.hi) AS hi
    FROM placed x LEFT JOIN median_ranks r ON r.n = x.n
    GROUP BY x.point_key
), steps AS (
    SELECT v.point_key, v.axes_json AS a, v.n, v.median AS cost, v.ci_lo AS lo, v.ci_hi AS hi,
        (SELECT f.median FROM v_summary f WHERE f.run_id = :run AND f.point_key = v.point_key AND f.metric = 'fetch_us') AS fetch,
        (SELECT w.median FROM v_summary w WHERE w.run_id = :run AND w.point_key = v.point_key AND w.metric = 'window_us') AS window
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'prefetch' AND v.kind = 'measured' AND v.outcome = 'measured' AND v.metric = 'cost_percent'
)
SELECT 'rows per second of a row cache that hits all, over the memory store' AS requirement,
    printf('%s, %s rows, %s tokens', a ->> '$.policy', printf('%,d', a ->> '$.cache_rows'), a ->> '$.tokens') AS "where", n AS pairs,
    printf('%.3g', ratio) AS measured, coalesce(printf('%.3g to %.3g', lo, hi), '-') AS "95 % interval", '>= 0.8' AS required,
    CASE WHEN coalesce(lo, ratio) >= 0.8 THEN 'yes' WHEN coalesce(hi, ratio) >= 0.8 THEN 'undecided' ELSE 'no' END AS met
FROM (SELECT c.*, h.a FROM cached c JOIN here h USING (point_key) ORDER BY h.a ->> '$.policy', CAST(h.a ->> '$.tokens' AS INTEGER))
UNION ALL
SELECT 'step beside a fetch that is shorter than its window, longer than with rows there by',
    printf('%s%s, %s tokens, layers %s: %d placements', a ->> '$.store', iif(a ->> '$.store' = 'memory', '', ' ' || (a ->> '$.residency')), a ->> '$.tokens',
        iif(a ->> '$.window' = 'backbone', 'computed', 'paced (emulated)'), count(*)), sum(n),
    iif(count(*) = 1, printf('%.2f %%', min(cost)), printf('%.2f to %.2f %%', min(cost), max(cost))),
    coalesce(printf('%.2f to %.2f %%', min(lo), max(hi)), '-'), '<= 3 %',
    CASE WHEN max(coalesce(hi, cost)) <= 3 THEN 'yes' WHEN max(coalesce(lo, cost)) <= 3 THEN 'undecided' ELSE 'no' END
FROM steps WHERE fetch < window
GROUP BY a ->> '$.store', a ->> '$.residency', a ->> '$.tokens', a ->> '$.window';
