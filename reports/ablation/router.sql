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
    SELECT a.*, printf('rho %g', rho) || CASE WHEN min(kind) OVER () = 'measured' AND max(kind) OVER () = 'measured' THEN ''
            WHEN max(kind) OVER () = min(kind) OVER () THEN ' (imported)' ELSE ' (partly imported)' END AS series,
        loss - avg(loss) OVER (PARTITION BY axis, rest, seed) AS difference
    FROM axes a JOIN swept USING (axis, rest)
)
SELECT 'mean' AS part, axis, series, rho, x, avg(difference) AS difference, avg(load_max) AS load_max, avg(dead_share) AS dead_share,
    count(*) AS n, sum(collapsed) AS collapsed, min(point_key) AS point_key
FROM named GROUP BY axis, series, x
UNION ALL
SELECT 'seed', axis, series, rho, x, difference, load_max, dead_share, CAST(seed AS INTEGER), collapsed, point_key FROM named
ORDER BY 1, 2, 4, 5;
