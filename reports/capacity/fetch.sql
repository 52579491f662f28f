-- title: F3. Gather time of one layer, by tier, against the windows
-- empty: this run holds no gather times.
-- Neither cache nor deduplication. Horizontal lines are the windows before the Engram layers of each kind of traffic; names of
-- neighbours stand side by side.
WITH t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.tokens' AS tokens, max(median) FILTER (WHERE metric = 'fetch_us') AS fetch_us
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'gather' GROUP BY point_key
), w AS (SELECT point_key, kind, a ->> '$.traffic' AS traffic, a ->> '$.layer' AS layer, a ->> '$.path' AS path, max(median) FILTER (WHERE metric = 'window_us') AS window_us
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'plan' GROUP BY point_key
), lines AS (SELECT min(point_key) AS point_key, replace(group_concat(DISTINCT traffic), ',', ' and ') || ', layer ' || layer AS label, window_us FROM w WHERE window_us > 0 GROUP BY layer, printf('%.6g', window_us)
), placed AS (SELECT *, pow(10, 1.1 * ((row_number() OVER (ORDER BY window_us) - 1) % 4)) AS label_at FROM lines)
SELECT point_key, 'fetch' AS what, path || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, CAST(tokens AS REAL) AS tokens, fetch_us AS us, NULL AS label, NULL AS label_at FROM t
UNION ALL
SELECT point_key, 'window', 'window', x.tokens, window_us, label, label_at FROM placed, (SELECT 1.0 AS tokens UNION SELECT 65536.0) x
ORDER BY 2, 3, 4;
