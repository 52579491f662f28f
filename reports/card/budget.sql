-- One line per rho of the experiment split.
-- empty: this run holds no point of the experiment split.
SELECT printf('%g', v.axes_json ->> '$.rho') AS rho, printf('%.3f', max(median) FILTER (WHERE metric = 'rho_counted')) AS "rho counted",
    printf('%d', max(median) FILTER (WHERE metric = 'experts')) AS experts,
    printf('%,d', max(median) FILTER (WHERE metric = 'rows_per_head')) AS "rows per head",
    printf('%.4g M', max(median) FILTER (WHERE metric = 'total_params') / 1e6) AS "P total",
    printf('%+.3f %%', 100 * max(median) FILTER (WHERE metric = 'total_residual')) AS residual,
    printf('%.3g M', max(median) FILTER (WHERE metric = 'active_params') / 1e6) AS "P active",
    printf('%.1f %%', 100 * max(median) FILTER (WHERE metric = 'projection_share')) AS "of it projections",
    printf('%.1f', max(median) FILTER (WHERE metric = 'moe_us') / 1e3) AS "MoE layer (ms)",
    coalesce(printf('%.3g', nullif(max(median) FILTER (WHERE metric = 'chain_us'), 0)), '-') AS "chain (µs)",
    coalesce(printf('%.3g', nullif(max(median) FILTER (WHERE metric = 'gather_us'), 0)), '-') AS "gather (µs)",
    v.axes_json ->> '$.tokens' AS tokens
FROM v_summary v
WHERE v.run_id = :run AND v.experiment = 'split' AND v.outcome = 'measured'
GROUP BY v.point_key
ORDER BY CAST(v.axes_json ->> '$.tokens' AS INTEGER), CAST(v.axes_json ->> '$.rho' AS REAL);
