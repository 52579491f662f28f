-- title: One step: rows are read while other layers compute
-- The step of median duration of the traced point whose fetches take most of its steps, of those with a window before
-- rows are needed; its ranges, one line per thread and name.
WITH picked AS (
    SELECT point_key FROM trace_events WHERE kind = 'range' AND name IN ('step', 'fetch', 'window') GROUP BY point_key
    HAVING max(name = 'step') ORDER BY max(name = 'window') DESC, 1.0 * sum((name = 'fetch') * (end_ns - start_ns)) / sum((name = 'step') * (end_ns - start_ns)) DESC,
        point_key LIMIT 1
), steps AS (
    SELECT point_key, step, start_ns, end_ns, row_number() OVER (ORDER BY end_ns - start_ns) AS place, count(*) OVER () AS n
    FROM trace_events JOIN picked USING (point_key) WHERE kind = 'range' AND name = 'step'
), chosen AS (
    SELECT * FROM steps WHERE place = (n + 1) / 2
), ranges AS (
    SELECT e.*, c.start_ns AS origin, c.step AS chosen, c.end_ns - c.start_ns AS step_ns
    FROM trace_events e JOIN chosen c ON c.point_key = e.point_key
    WHERE e.kind = 'range' AND e.name <> 'step' AND e.start_ns < c.end_ns AND e.end_ns >= c.start_ns
        AND (e.step IS NULL OR e.step = c.step)
), lines AS (
    SELECT *, CASE name WHEN 'window' THEN 1 WHEN 'layer' THEN 2 WHEN 'project' THEN 3 WHEN 'gate' THEN 4 WHEN 'conv' THEN 5
            WHEN 'lookup' THEN 6 WHEN 'hash' THEN 7 WHEN 'wait' THEN 8 WHEN 'fetch' THEN 9 WHEN 'gather' THEN 10 ELSE 11 END AS rank,
        max(name = 'fetch') OVER (PARTITION BY thread) AS fetches
    FROM ranges
)
SELECT name AS series, dense_rank() OVER (ORDER BY fetches, thread, rank) AS line, thread_name || ': ' || name AS line_name,
    (start_ns - origin) / 1e3 AS start_us, (end_ns - origin) / 1e3 AS end_us, step_ns / 1e3 AS step_us, layer, chosen AS step,
    CASE WHEN layer IS NOT NULL AND (end_ns - start_ns) * 30 > step_ns THEN layer ELSE '' END AS label, point_key
FROM lines
ORDER BY rank, line, start_ns;
