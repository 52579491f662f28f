-- title: F18. What changed since the plan before?
-- empty: this database holds no earlier plan with points of the same axes.
-- The newest earlier run of engram size; points are matched by all their axes.
WITH old AS (SELECT run_id FROM runs WHERE sweep_name = 'size' AND run_id <> :run AND started_utc <= (SELECT started_utc FROM runs WHERE run_id = :run) ORDER BY started_utc DESC LIMIT 1),
was AS (
    SELECT p.axes_json, v.value FROM run_points l JOIN old USING (run_id) JOIN points p USING (point_key) JOIN sample_values v USING (block_id, point_key)
    WHERE v.metric = 'fetch_us' AND p.kind = 'simulated' AND p.axes_json ->> '$.what' IN ('gather', 'plan')
), now AS (SELECT point_key, kind, axes_json, median FROM v_summary WHERE run_id = :run AND metric = 'fetch_us' AND experiment = 'size' AND axes_json ->> '$.what' IN ('gather', 'plan'))
SELECT now.point_key, (axes_json ->> '$.path') || ' (' || now.kind || ')' AS series, was.value AS old_us, now.median AS new_us, 100 * (now.median / was.value - 1) AS change_percent,
    substr((SELECT run_id FROM old), 1, 8) AS old_run
FROM now JOIN was USING (axes_json) ORDER BY series, old_us;
