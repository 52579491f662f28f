-- Every arm whose gates were looked at: means over runs, layers and streams, after training.
-- empty: No trained run of this database has gates that were looked at.
WITH parts AS (
    SELECT t.point_key, t.seed, t.kind, '["' || replace(s.name, ':', '","') || '"]' AS name, s.step, s.value,
        nullif(ltrim(coalesce((SELECT group_concat(a.axis || '=' || a.value, ' ') FROM axis_values a WHERE a.point_key = t.point_key AND NOT a.is_default AND a.axis NOT IN ('model_seed', 'threads')), '')
            || coalesce(' text=' || (t.arm ->> '$.data'), '')), '') AS arm
    FROM v_train t JOIN series s ON s.block_id = t.block_id AND s.point_key = t.point_key
    WHERE s.name GLOB 'gate:*' AND s.step = 100 OR s.name GLOB 'rows_foreign:*' OR s.name GLOB 'rows_collided:*' OR s.name GLOB 'gathered_bytes:*'
), named AS (
    SELECT arm, seed, kind, value, iif(name ->> '$[0]' = 'gate', name ->> '$[1]', name ->> '$[0]') AS part FROM parts
)
SELECT arm, count(DISTINCT seed) AS runs, group_concat(DISTINCT kind) AS kind,
    printf('%.3f', avg(value) FILTER (WHERE part = 'mean')) AS "mean gate",
    printf('%.1f %%', 100 * avg(value) FILTER (WHERE part = 'saturated05')) AS saturated,
    printf('%.3g', avg(value) FILTER (WHERE part = 'slope')) AS "mean slope",
    iif(count(value) FILTER (WHERE part = 'rows_collided'), printf('%.0f %%', 100 * avg(value) FILTER (WHERE part = 'rows_collided')), '') AS "rows with foreign reads",
    iif(count(value) FILTER (WHERE part = 'rows_foreign'), printf('%.0f %%', 100 * avg(value) FILTER (WHERE part = 'rows_foreign')), '') AS "foreign reads",
    printf('%.0f', avg(value) FILTER (WHERE part = 'gathered_bytes')) AS "bytes a token and module",
    printf('%.1f %%', 100 * avg(value) FILTER (WHERE part = 'unused')) AS "of them for nothing"
FROM named GROUP BY arm ORDER BY arm;
