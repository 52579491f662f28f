-- title: The router's bias step, the learning rate, and what they cost
-- empty: no run over bias_step or lr: engram train sweeps/train/router.sweep
-- Each run less the mean of its rho and seed over the values of the axis.
WITH axes AS (
    SELECT t.*, a.axis, coalesce(a.number, 0) AS x, json_remove(t.arm, '$.' || a.axis) AS rest
    FROM v_train t JOIN axis_values a USING (point_key)
    WHERE t.loss IS NOT NULL AND a.axis IN ('bias_step', 'lr') AND a.is_default = 0
), swept AS (
    SELECT axis, rest FROM axes GROUP BY axis, rest HAVING count(DISTINCT x) >= 3
), named AS (
    SELECT a.*, printf('rho %g', rho) AS rho_name, loss - avg(loss) OVER (PARTITION BY axis, rest, seed) AS difference
    FROM axes a JOIN swept USING (axis, rest)
)
SELECT axis, rho_name || CASE WHEN min(min(kind)) OVER () = 'measured' AND max(max(kind)) OVER () = 'measured' THEN '' ELSE ' (imported)' END AS series,
    x, avg(difference) AS difference, avg(load_max) AS load_max, avg(dead_share) AS dead_share, count(*) AS seeds,
    sum(collapsed) AS collapsed, min(point_key) AS point_key
FROM named GROUP BY axis, rho_name, x ORDER BY axis, rho, x;
