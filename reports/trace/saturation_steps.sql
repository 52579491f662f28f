-- title: Saturated gates over the steps of a trace
-- Marks `saturated` of the traced pass: their mean and range in each step, by the layer of the range around them; of the
-- traced points that differ in the layer alone, the most of them that have any.
WITH marked AS (
    SELECT p.point_key, p.variant || json_remove(p.axes_json, '$.layer') AS config FROM points p
    WHERE p.point_key IN (SELECT point_key FROM trace_events WHERE kind = 'mark' AND name = 'saturated')
), m AS (
    SELECT point_key, thread, start_ns, value FROM trace_events JOIN marked USING (point_key)
    WHERE kind = 'mark' AND name = 'saturated' AND value IS NOT NULL
        AND config = (SELECT config FROM marked GROUP BY config ORDER BY count(*) DESC, config LIMIT 1)
), inside AS (
    SELECT m.*, r.layer, r.step, row_number() OVER (PARTITION BY m.point_key, m.thread, m.start_ns, m.value ORDER BY r.end_ns - r.start_ns) AS inner
    FROM m JOIN trace_events r ON r.point_key = m.point_key AND r.thread = m.thread AND r.kind = 'range' AND r.layer IS NOT NULL
        AND r.start_ns <= m.start_ns AND r.end_ns >= m.start_ns
)
SELECT printf('layer %d', layer) AS series, layer, step, 100 * avg(value) AS mean, 100 * min(value) AS lo, 100 * max(value) AS hi,
    count(*) AS marks, min(point_key) AS point_key
FROM inside WHERE inner = 1
GROUP BY layer, step
ORDER BY layer, step;
