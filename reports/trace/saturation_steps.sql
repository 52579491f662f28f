-- title: Saturated gates over the steps of a trace
-- Marks `saturated` of the traced pass: their mean and range in each step, by the layer of the range around them; of the
-- first point that has any.
WITH m AS (
    SELECT point_key, thread, start_ns, value FROM trace_events
    WHERE kind = 'mark' AND name = 'saturated' AND value IS NOT NULL
        AND point_key = (SELECT min(point_key) FROM trace_events WHERE kind = 'mark' AND name = 'saturated')
), inside AS (
    SELECT m.*, r.layer, r.step, row_number() OVER (PARTITION BY m.thread, m.start_ns, m.value ORDER BY r.end_ns - r.start_ns) AS inner
    FROM m JOIN trace_events r ON r.point_key = m.point_key AND r.thread = m.thread AND r.kind = 'range' AND r.layer IS NOT NULL
        AND r.start_ns <= m.start_ns AND r.end_ns >= m.start_ns
)
SELECT printf('layer %d', layer) AS series, layer, step, 100 * avg(value) AS mean, 100 * min(value) AS lo, 100 * max(value) AS hi,
    count(*) AS marks, point_key
FROM inside WHERE inner = 1
GROUP BY layer, step
ORDER BY layer, step;
