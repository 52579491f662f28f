-- title: The same step around its first fetch
-- As the figure of the whole step, from the begin of its first hash or fetch to a quarter beyond the end of its first wait
-- and fetch.
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
), first_fetch AS (
    SELECT min(start_ns) AS begins, max(end_ns) AS ends, layer FROM ranges
    WHERE name = 'fetch' AND layer IS (SELECT layer FROM ranges WHERE name = 'fetch' ORDER BY start_ns LIMIT 1)
), zoom AS (
    SELECT min(begins, ifnull((SELECT min(start_ns) FROM ranges WHERE name = 'hash'), begins)) AS a,
        max(ends, ifnull((SELECT max(end_ns) FROM ranges r WHERE r.name = 'wait' AND r.layer IS f.layer AND r.start_ns < f.ends), ends)) AS b
    FROM first_fetch f
), lines AS (
    SELECT *, (SELECT a FROM zoom) AS zoom_a, (SELECT b + (b - a) / 4 FROM zoom) AS zoom_b, CASE name WHEN 'window' THEN 1 WHEN 'layer' THEN 2 WHEN 'project' THEN 3 WHEN 'gate' THEN 4 WHEN 'conv' THEN 5
            WHEN 'lookup' THEN 6 WHEN 'hash' THEN 7 WHEN 'wait' THEN 8 WHEN 'fetch' THEN 9 WHEN 'gather' THEN 10 ELSE 11 END AS rank,
        max(name = 'fetch') OVER (PARTITION BY thread) AS fetches
    FROM ranges
    WHERE end_ns >= (SELECT a FROM zoom) AND start_ns <= (SELECT b + (b - a) / 4 FROM zoom)
)
SELECT name AS series, dense_rank() OVER (ORDER BY fetches, thread, rank) AS line, thread_name || ': ' || name AS line_name,
    (max(start_ns, zoom_a) - origin) / 1e3 AS start_us,
    (min(end_ns, zoom_b) - origin) / 1e3 AS end_us, (zoom_b - zoom_a) / 1e3 AS shown_us, layer, chosen AS step,
    CASE WHEN layer IS NOT NULL AND (min(end_ns, zoom_b) - max(start_ns, zoom_a)) * 30 > zoom_b - zoom_a THEN layer ELSE '' END AS label, point_key
FROM lines
ORDER BY rank, line, start_ns;
