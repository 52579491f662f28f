-- title: Rows named twice in a batch, fetched once: when that pays
-- empty: this run holds no points of tier with dedup on and off.
-- Time of a batch without over time with it, paired within a block: median and its 95 % interval. Last column: the least share at
-- which it pays beyond doubt, with every larger one on its side of 1.
WITH here AS (
    SELECT p.point_key, l.block_id, p.kind, p.axes_json AS a, json_remove(p.axes_json, '$.dedup') AS rest
    FROM run_points l JOIN points p USING (point_key) JOIN block_points b USING (block_id, point_key)
    WHERE l.run_id = :run AND p.experiment = 'tier' AND b.outcome = 'measured'
), pairs AS (
    SELECT t.point_key, o.wall_ns * 1.0 / o.inner_iterations * s.inner_iterations / s.wall_ns AS ratio
    FROM here t JOIN here f ON f.block_id = t.block_id AND f.rest = t.rest AND f.a ->> '$.dedup' = 'off'
    JOIN samples s ON s.block_id = t.block_id AND s.point_key = t.point_key AND s.traced = 0 AND s.wall_ns > 0
    JOIN samples o ON o.block_id = f.block_id AND o.point_key = f.point_key AND o.segment = s.segment AND o.pair = s.pair AND o.traced = 0
    WHERE t.a ->> '$.dedup' = 'on'
), placed AS (
    SELECT point_key, ratio, row_number() OVER (PARTITION BY point_key ORDER BY ratio) AS place, count(*) OVER (PARTITION BY point_key) AS n
    FROM pairs
), medians AS (
    SELECT x.point_key, x.n, avg(x.ratio) FILTER (WHERE x.place IN ((x.n + 1) / 2, (x.n + 2) / 2)) AS ratio,
        max(x.ratio) FILTER (WHERE x.place = m.lo) AS lo, max(x.ratio) FILTER (WHERE x.place = m.hi) AS hi
    FROM placed x LEFT JOIN median_ranks m ON m.n = x.n
    GROUP BY x.point_key
), t AS (
    SELECT (a ->> '$.store') || iif(a ->> '$.store' = 'memory', '', ' ' || (a ->> '$.residency'))
            || CASE here.kind WHEN 'measured' THEN '' ELSE ' (' || here.kind || ')' END AS series,
        iif(a ->> '$.store' = 'memory', 0, iif(a ->> '$.residency' = 'warm', 1, 2)) AS place, a ->> '$.corpus' AS corpus, a ->> '$.orders' AS orders,
        CAST(a ->> '$.tokens' AS INTEGER) AS tokens, 100 * v.median AS share, m.ratio, coalesce(m.lo, m.ratio) AS lo, coalesce(m.hi, m.ratio) AS hi,
        CASE WHEN m.lo > 1 THEN 1 WHEN m.hi < 1 THEN -1 ELSE 0 END AS sure, m.n, here.point_key
    FROM medians m JOIN here USING (point_key)
    JOIN v_summary v ON v.run_id = :run AND v.point_key = m.point_key AND v.metric = 'duplicate_share'
)
SELECT t.*, (SELECT min(w.share) FROM t w WHERE w.series = t.series AND w.sure > 0
        AND w.share > coalesce((SELECT max(c.share) FROM t c WHERE c.series = t.series AND c.ratio <= 1), -1)) AS pays_from
FROM t
ORDER BY place, series, share, point_key;
