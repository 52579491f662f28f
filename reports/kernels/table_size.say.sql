SELECT printf('%s tokens, %s output, %s thread%s. ', max(tokens), max(out), max(threads), iif(max(threads) = 1, '', 's'))
    || (SELECT printf('In the %s (%.3g MiB of rows looked up) %s reads %.3g GB/s, %.0f %% of its roof',
            iif(n.tables = 1, 'only table', 'largest table'), working_set_bytes / 1048576.0, series, gbps, percent_of_roof)
        FROM figure, (SELECT count(DISTINCT rows_per_head) AS tables FROM figure) n
        WHERE series <> 'roof' ORDER BY rows_per_head DESC, gbps DESC LIMIT 1)
    || coalesce((SELECT printf('; in the smallest (%.3g MiB) %s reads %.3g GB/s', working_set_bytes / 1048576.0, series, gbps)
        FROM figure WHERE series <> 'roof' AND rows_per_head < (SELECT max(rows_per_head) FROM figure)
        ORDER BY rows_per_head, gbps DESC LIMIT 1), '')
    || '.'
FROM figure;
