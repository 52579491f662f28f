-- title: The router's bias step, the learning rate, and what they cost
-- empty: no run over bias_step or lr: engram train sweeps/train/router.sweep
-- Each run less the mean of its arm and seed over the values of the axis, of the seeds that have all of them.
WITH axes AS (
    SELECT t.*, a.axis, a.number AS x, json_remove(t.arm, '$.' || a.axis) AS rest
    FROM v_train t JOIN axis_values a USING (point_key)
    WHERE t.loss IS NOT NULL AND a.axis IN ('bias_step', 'lr') AND a.is_default = 0
), curves AS (
    SELECT axis, rest, count(DISTINCT x) AS places FROM axes GROUP BY axis, rest HAVING count(DISTINCT x) >= 3
), seeds AS (
    SELECT axis, rest, seed FROM axes JOIN curves c USING (axis, rest) GROUP BY axis, rest, seed HAVING count(DISTINCT x) = max(c.places)
), named AS (
    SELECT a.*, printf('rho %g', rho) || coalesce(', ' || nullif(arm_label(json_remove(rest, '$.rho', iif(rung = 'R0c', '$.rung', '$.rho'),
            iif(budget = 20, '$.budget', '$.rho'))), ''), '') || note AS series,
        loss - avg(loss) OVER (PARTITION BY axis, rest, seed) AS difference
    FROM axes a JOIN seeds USING (axis, rest, seed)
)
SELECT 'mean' AS part, axis, series, rho, x, avg(difference) AS difference, avg(load_max) AS load_max, avg(dead_share) AS dead_share,
    count(*) AS n, sum(collapsed > 0) AS collapsed, min(point_key) AS point_key
FROM named GROUP BY axis, series, x
UNION ALL
SELECT 'seed', axis, series, rho, x, difference, load_max, dead_share, CAST(seed AS INTEGER), collapsed, point_key FROM named
ORDER BY 1, 2, 4, 3, 5;
