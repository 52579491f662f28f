-- Every run, failed and collapsed ones too; a model under two spellings of its axes once.
-- empty: No training run in this database.
SELECT nullif(ltrim(coalesce((SELECT group_concat(a.axis || '=' || a.value, ' ') FROM axis_values a WHERE a.point_key = t.point_key AND NOT a.is_default AND a.axis NOT IN ('model_seed', 'threads')), '')
        || coalesce(' text=' || (t.arm ->> '$.data'), '')), '') AS arm,
    seed, kind, outcome || iif(collapsed > 0, ', router collapsed', '') || coalesce(': ' || reason, '') AS outcome,
    printf('%.4f', loss) AS "nats per token", printf('%.4f', bits_per_byte) AS "bits per byte",
    printf('%.4f', suppressed_loss) AS "memory silenced", printf('%d', experts) AS E,
    printf('%,d', table_rows) AS "table rows", printf('%+.3f %%', 100 * residual) AS "P_total residual", printf('%.2f', load_max) AS "busiest expert",
    printf('%.0f %%', 100 * dead_share) AS idle, printf('%.0f', cpu_s) AS "CPU s",
    iif(other_threads > 0, printf('%d, before %d', threads_used, other_threads), printf('%d', threads_used)) AS threads
FROM v_train t WHERE NOT again ORDER BY 1, CAST(seed AS INTEGER);
