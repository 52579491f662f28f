WITH ends AS (
    SELECT *, row_number() OVER (PARTITION BY backend ORDER BY rows_per_head DESC, gbps DESC) AS last,
        row_number() OVER (PARTITION BY backend ORDER BY rows_per_head, gbps DESC) AS first
    FROM figure WHERE NOT of_roof
)
SELECT (SELECT printf('%s tokens, %s output, %s thread%s', max(tokens), max(out), max(threads), iif(max(threads) = 1, '', 's')) FROM figure)
    || iif((SELECT max(backend) FROM figure) = 'cpu', '', '; kernels of a device by device time') || '. ' || group_concat(part, ' ')
FROM (SELECT printf('In the %s (%.3g MiB of rows looked up) %s reads %.3g GB/s', iif(f.rows_per_head < l.rows_per_head, 'largest table', 'only table'),
            l.working_set_bytes / 1048576.0, l.series, l.gbps)
        || coalesce(printf(', %.0f %% of its roof', l.percent_of_roof), '')
        || iif(f.rows_per_head < l.rows_per_head, printf('; in the smallest (%.3g MiB) %s reads %.3g GB/s', f.working_set_bytes / 1048576.0, f.series, f.gbps), '')
        || '.' AS part
      FROM ends l JOIN ends f USING (backend) WHERE l.last = 1 AND f.first = 1 ORDER BY backend);
