SELECT printf('%s tokens, %s output, %s thread%s. ', max(tokens), max(out), max(threads), iif(max(threads) = 1, '', 's'))
    || (SELECT printf('In the largest table (%d MiB of rows looked up) %s reads %.3g GB/s, %.0f %% of its roof', working_set_bytes / 1048576, series, gbps,
            percent_of_roof)
        FROM figure WHERE series <> 'roof' ORDER BY rows_per_head DESC, gbps DESC LIMIT 1)
    || (SELECT printf('; in the smallest (%.3g MiB) %s reads %.3g GB/s.', working_set_bytes / 1048576, series, gbps)
        FROM figure WHERE series <> 'roof' ORDER BY rows_per_head, gbps DESC LIMIT 1)
FROM figure;
