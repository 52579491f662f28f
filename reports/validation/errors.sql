-- empty: No predictions of this run: `engram calibrate --validate` makes them.
-- Relative errors of times; differences of shares.
SELECT name AS "model", printf('%d', count(*)) AS "points",
    iif(metric IN ('hit_rate', 'distinct_all'), printf('%.4f', avg(abs(simulated - measured))),
        printf('%.1f %%', 100 * avg(abs(simulated / measured - 1)))) AS "mean error",
    iif(metric IN ('hit_rate', 'distinct_all'), printf('%+.4f', avg(simulated - measured)),
        printf('%+.1f %%', 100 * avg(simulated / measured - 1))) AS "signed",
    iif(metric IN ('hit_rate', 'distinct_all'), printf('%.4f', max(abs(simulated - measured))),
        printf('%.1f %%', 100 * max(abs(simulated / measured - 1)))) AS "worst",
    CASE model WHEN 'latency ladder' THEN '15 %' WHEN 'row gather' THEN '20 %' WHEN 'reads by depth' THEN '12 %'
        WHEN 'prefetch under compute' THEN '15 %, of both' WHEN 'exact stack distances' THEN 'equal'
        WHEN 'distinct rows' THEN 'equal' ELSE '0.01' END AS "gate, of the mean",
    printf('%d', sum(extrapolated)) AS "extrapolated"
FROM (SELECT *, iif(experiment = 'prefetch', model || iif(axes_json ->> '$.store' = 'memory', ', table in memory', ', table in a file'), model) AS name
    FROM v_predictions WHERE run_id = :run)
GROUP BY name
ORDER BY min(experiment IN ('cache', 'reuse')), name;
