-- Points of the run without a measurement, by reason, with one of them as an example.
-- empty: Every point of this run has its figures.
SELECT p.experiment, coalesce(bp.outcome, 'not run') AS outcome, coalesce(bp.reason, bp.state) AS reason,
    count(*) AS points,
    (SELECT group_concat(a.axis || '=' || a.value, ' ')
     FROM axis_values a WHERE a.point_key = min(p.point_key) AND NOT a.is_default) AS "for example"
FROM run_points l
JOIN block_points bp USING (block_id, point_key)
JOIN points p USING (point_key)
WHERE l.run_id = :run AND coalesce(bp.outcome, '') <> 'measured'
GROUP BY 1, 2, 3
ORDER BY outcome = 'not run', outcome = 'skipped', 1, 2, 3;
