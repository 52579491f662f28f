-- empty: No predictions of this run.
SELECT model AS "model", (SELECT group_concat(a.key || '=' || a.value, ' ') FROM json_each(axes_json) a
        JOIN axis_values x ON x.point_key = v.point_key AND x.axis = a.key WHERE x.is_default = 0) AS "point",
    metric AS "metric", printf('%.4g', measured) AS "measured", printf('%.4g', simulated) AS "predicted",
    printf('%+.0f %%', 100 * (simulated / measured - 1)) AS "off", provenance AS "rests on"
FROM v_predictions v
WHERE run_id = :run AND metric NOT IN ('hit_rate', 'distinct_all')
ORDER BY abs(ln(simulated / measured)) DESC
LIMIT 10;
