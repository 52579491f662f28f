-- What is required of stores and prefetcher, as measured in this run. Wall time, medians of pairs within one block with their 95 %
-- interval; of prefetching, all samples of the placements whose fetch alone is shorter than their window.
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
), steps AS ( -- with few samples a point says nothing
    SELECT v.point_key, l.block_id, v.axes_json AS a,
        (v.axes_json ->> '$.store') || iif(v.axes_json ->> '$.store' = 'memory', '', iif(v.axes_json ->> '$.io' = 'direct', ' direct', '') || ' ' || (v.axes_json ->> '$.residency'))
            || coalesce(printf(', %,d rows a head', nullif(v.axes_json ->> '$.rows', 0)), '') || ', ' || (v.axes_json ->> '$.tokens') || ' tokens, layers ' || iif(v.axes_json ->> '$.window' = 'backbone', 'computed', 'paced (emulated)') AS what
    FROM v_summary v JOIN run_points l ON l.run_id = v.run_id AND l.point_key = v.point_key
    WHERE v.run_id = :run AND v.experiment = 'prefetch' AND v.backend = 'cpu' AND v.kind = 'measured' AND v.outcome = 'measured' AND v.metric = 'window_us' AND v.n >= 6
        AND coalesce(v.axes_json ->> '$.phase', 'decode') = 'decode' AND coalesce(v.axes_json ->> '$.modules', 1) = 1
        AND coalesce(v.axes_json ->> '$.vision', 'off') = 'off'
        AND v.median > (SELECT f.median FROM v_summary f WHERE f.run_id = :run AND f.point_key = v.point_key AND f.metric = 'fetch_us')
), costs AS (
    SELECT s.what, s.a ->> '$.placement' AS placement, x.value, row_number() OVER (PARTITION BY s.what ORDER BY x.value) AS place, count(*) OVER (PARTITION BY s.what) AS n
    FROM steps s JOIN sample_values x ON x.block_id = s.block_id AND x.point_key = s.point_key AND x.metric = 'cost_percent'
    JOIN samples y ON y.block_id = x.block_id AND y.point_key = x.point_key AND y.segment = x.segment AND y.pair = x.pair AND y.traced = 0
), beside AS (
    SELECT c.what, c.n, count(DISTINCT c.placement) AS placements, avg(c.value) FILTER (WHERE c.place IN ((c.n + 1) / 2, (c.n + 2) / 2)) AS cost,
        max(c.value) FILTER (WHERE c.place = r.lo) AS lo, max(c.value) FILTER (WHERE c.place = r.hi) AS hi
    FROM costs c LEFT JOIN median_ranks r ON r.n = c.n
    GROUP BY c.what
)
SELECT 'rows per second of a row cache that hits all, over the memory store' AS requirement,
    printf('%s, %s rows, %s tokens', a ->> '$.policy', printf('%,d', a ->> '$.cache_rows'), a ->> '$.tokens') AS "where", n AS pairs,
    printf('%.3g', ratio) AS measured, iif(lo IS NULL, '-', printf('%.3g to %.3g', lo, hi)) AS "95 % interval", '>= 0.8' AS required,
    CASE WHEN coalesce(lo, ratio) >= 0.8 THEN 'yes' WHEN coalesce(hi, ratio) >= 0.8 THEN 'undecided' ELSE 'no' END AS met
FROM (SELECT c.*, h.a FROM cached c JOIN here h USING (point_key) ORDER BY h.a ->> '$.policy', CAST(h.a ->> '$.tokens' AS INTEGER))
UNION ALL
SELECT 'step beside a fetch that is shorter than its window, longer than with rows there by', printf('%s, %d placement%s', what, placements, iif(placements = 1, '', 's')), n,
    printf('%.2f %%', cost), iif(lo IS NULL, '-', printf('%.2f to %.2f %%', lo, hi)), '<= 3 %',
    CASE WHEN coalesce(hi, cost) <= 3 THEN 'yes' WHEN coalesce(lo, cost) <= 3 THEN 'undecided' ELSE 'no' END
FROM beside;
