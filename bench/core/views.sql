-- Views, created anew after every migration. v_summary is what reports and people read: one row per point of a
-- run and metric; a point without samples (skipped, failed, wrong, pending) has one row with metric NULL.
--
-- n, median and ci_* are over the untraced samples of the point in the block that measured it for the run, all
-- segments together; ci_* are the order statistics of median_ranks (95 %, NULL below 6 samples).
-- percent_of_roof is the median, over pairs (same block, segment and pair), of 100 * roof time / point time, both
-- per inner iteration and on the roof's clock; the roof is the block's for the same backend, and axes but the variant. NULL
-- for metrics without a clock and where no roof was measured.
--
-- Everything is a look-up per row, so that WHERE run_id = ... (or any other filter) costs only the rows asked for.

DROP VIEW IF EXISTS v_summary;
CREATE VIEW v_summary AS
SELECT t.run_id, t.config_key, t.point_key, t.experiment, t.backend, t.kind, t.outcome, t.axes_json,
    t.metric, t.unit, t.clock, t.n,
    (SELECT avg(x.value)
     FROM (SELECT v.value, row_number() OVER (ORDER BY v.value) AS place, count(*) OVER () AS n
           FROM sample_values v JOIN samples s USING (block_id, point_key, segment, pair)
           WHERE v.block_id = t.block_id AND v.point_key = t.point_key AND v.metric = t.metric AND s.traced = 0) x
     WHERE x.place IN ((x.n + 1) / 2, (x.n + 2) / 2)) AS median,
    (SELECT max(x.value)
     FROM (SELECT v.value, row_number() OVER (ORDER BY v.value) AS place, count(*) OVER () AS n
           FROM sample_values v JOIN samples s USING (block_id, point_key, segment, pair)
           WHERE v.block_id = t.block_id AND v.point_key = t.point_key AND v.metric = t.metric AND s.traced = 0) x
     WHERE x.place = (SELECT r.lo FROM median_ranks r WHERE r.n = x.n)) AS ci_lo,
    (SELECT max(x.value)
     FROM (SELECT v.value, row_number() OVER (ORDER BY v.value) AS place, count(*) OVER () AS n
           FROM sample_values v JOIN samples s USING (block_id, point_key, segment, pair)
           WHERE v.block_id = t.block_id AND v.point_key = t.point_key AND v.metric = t.metric AND s.traced = 0) x
     WHERE x.place = (SELECT r.hi FROM median_ranks r WHERE r.n = x.n)) AS ci_hi,
    CASE WHEN t.clock <> 'none' THEN
        (SELECT avg(y.percent)
         FROM (SELECT x.percent, row_number() OVER (ORDER BY x.percent) AS place, count(*) OVER () AS pairs
               FROM (SELECT 100.0 * CASE f.clock WHEN 'cpu' THEN q.cpu_ns ELSE q.wall_ns END / q.inner_iterations
                         * s.inner_iterations / nullif(CASE f.clock WHEN 'cpu' THEN s.cpu_ns ELSE s.wall_ns END, 0)
                         AS percent
                     FROM roofs f
                     CROSS JOIN points fp ON fp.point_key = f.roof_point_key
                     CROSS JOIN samples s ON s.block_id = f.block_id AND s.point_key = t.point_key AND s.traced = 0
                     CROSS JOIN samples q ON q.block_id = f.block_id AND q.point_key = f.roof_point_key
                         AND q.segment = s.segment AND q.pair = s.pair AND q.traced = 0
                     WHERE f.block_id = t.block_id
                         AND fp.backend = t.backend
                         AND json_remove(fp.axes_json, '$.variant') = json_remove(t.axes_json, '$.variant')) x
               WHERE x.percent IS NOT NULL) y
         WHERE y.place IN ((y.pairs + 1) / 2, (y.pairs + 2) / 2))
    END AS percent_of_roof
FROM (
    SELECT l.run_id, p.config_key, l.point_key, p.experiment, p.backend, p.kind, b.outcome, p.axes_json,
        m.metric, m.unit, m.clock, l.block_id,
        (SELECT count(*)
         FROM sample_values v JOIN samples s USING (block_id, point_key, segment, pair)
         WHERE v.block_id = l.block_id AND v.point_key = l.point_key AND v.metric = m.metric AND s.traced = 0) AS n
    FROM run_points l
    JOIN points p USING (point_key)
    JOIN block_points b USING (block_id, point_key)
    LEFT JOIN metrics m ON m.experiment = p.experiment
        AND EXISTS (SELECT 1 FROM sample_values v
                    WHERE v.block_id = l.block_id AND v.point_key = l.point_key AND v.metric = m.metric)
) t;
