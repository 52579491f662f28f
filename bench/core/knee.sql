-- v_cache_knee: the last-level cache as random loads see it, one row per machine and page size, from all
-- points of the experiment `ladder` that a database holds (one chain of 64-byte lines on one thread, the
-- latest measurement of each working set).
--
-- far_ns is the latency of the largest set, near_ns that of the largest set with at most a quarter of it.
-- A set of S bytes that finds C of them in the cache takes near + (far - near) (1 - C / S): each point below
-- half of far_ns says what C is, and the largest is knee_bytes: where latency leaves the plateau. Points beyond
-- say little of the cache and much of page walks; so do all points on small pages, which are left out.
-- Processors that share the cache with others get less than the operating system's value. NULL when the sets
-- do not reach memory: fewer than four points, far below four times near, or the largest set below four knees.
--
-- A temporary view, so that databases made before it have it too.
CREATE TEMP VIEW IF NOT EXISTS v_cache_knee AS
WITH latest AS (
    SELECT p.machine_id, p.axes_json ->> '$.pages' AS pages, CAST(p.axes_json ->> '$.bytes' AS INTEGER) AS bytes,
        p.point_key, b.block_id,
        row_number() OVER (PARTITION BY p.machine_id, p.axes_json ->> '$.pages', p.axes_json ->> '$.bytes'
            ORDER BY r.started_utc DESC, b.block_id) AS place
    FROM points p
    JOIN block_points b USING (point_key)
    JOIN blocks k USING (block_id)
    JOIN runs r ON r.run_id = k.run_id
    WHERE p.experiment = 'ladder' AND p.kind = 'measured' AND b.outcome = 'measured'
        AND p.axes_json ->> '$.access' = 'chains' AND p.axes_json ->> '$.line' = '64'
        AND p.axes_json ->> '$.chains' = 1 AND p.axes_json ->> '$.threads' = 1
        AND p.axes_json ->> '$.pin' = 'none' AND p.axes_json ->> '$.pages' <> '4k'
        AND NOT EXISTS (SELECT 1 FROM sample_values h
            WHERE h.block_id = b.block_id AND h.point_key = p.point_key AND h.metric = 'huge_share' AND h.value < 0.5)
), sorted AS (
    SELECT l.machine_id, l.pages, l.bytes, v.value,
        row_number() OVER (PARTITION BY l.machine_id, l.pages, l.bytes ORDER BY v.value) AS place,
        count(*) OVER (PARTITION BY l.machine_id, l.pages, l.bytes) AS n
    FROM latest l
    JOIN sample_values v ON v.block_id = l.block_id AND v.point_key = l.point_key AND v.metric = 'ns_per_load'
    JOIN samples s USING (block_id, point_key, segment, pair)
    WHERE l.place = 1 AND s.traced = 0
), steps AS (
    SELECT machine_id, pages, bytes, avg(value) AS ns
    FROM sorted
    WHERE place IN ((n + 1) / 2, (n + 2) / 2)
    GROUP BY machine_id, pages, bytes
), ends AS (
    SELECT s.*, first_value(ns) OVER (PARTITION BY machine_id, pages ORDER BY bytes DESC) AS far_ns,
        max(bytes) OVER (PARTITION BY machine_id, pages) AS largest_bytes,
        count(*) OVER (PARTITION BY machine_id, pages) AS points
    FROM steps s
), near AS (
    SELECT machine_id, pages, ns AS near_ns, max(bytes) AS near_bytes
    FROM ends
    WHERE ns <= far_ns / 4
    GROUP BY machine_id, pages
), knees AS (
    SELECT e.machine_id, e.pages, e.far_ns, n.near_ns, e.largest_bytes, e.points,
        max(e.bytes * (e.far_ns - e.ns) / (e.far_ns - n.near_ns)) FILTER (WHERE e.ns <= 0.5 * e.far_ns) AS bytes
    FROM ends e
    JOIN near n ON n.machine_id = e.machine_id AND n.pages = e.pages
    GROUP BY e.machine_id, e.pages
)
SELECT machine_id, pages, far_ns, near_ns, points,
    CASE WHEN points >= 4 AND far_ns >= 4 * near_ns AND largest_bytes >= 4 * bytes
        THEN CAST(bytes AS INTEGER) END AS knee_bytes
FROM knees;
