WITH e AS (SELECT *, start_us AS a, end_us AS b FROM figure),
seen AS (SELECT series, a, b, max(b) OVER (PARTITION BY series, layer ORDER BY a, b
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached, layer FROM e WHERE series IN ('fetch', 'wait')),
u AS (SELECT series, layer, sum(max(b - max(a, ifnull(reached, a)), 0)) AS us FROM seen GROUP BY series, layer)
SELECT (SELECT printf('Step %s takes ', max(step)) || iif(max(step_us) < 10000, printf('%.4g us. ', max(step_us)),
        printf('%.4g ms. ', max(step_us) / 1000)) FROM figure)
    || ifnull((SELECT group_concat(printf('Layer %s: rows are read for %.4g us, the consumer waits %.4g us', f.layer, f.us,
            ifnull((SELECT us FROM u w WHERE w.series = 'wait' AND w.layer IS f.layer), 0)), '; ')
        FROM u f WHERE f.series = 'fetch') || '.', 'No rows are read in it.');
