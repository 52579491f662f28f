SELECT 'Bytes are those that the loop loads and stores, without the lines that ordinary stores read first. '
    || (SELECT group_concat(printf('%s: %s up to %.3g GB/s', series, what, best), '; ')
        FROM (SELECT series, what, max(gbps) AS best FROM figure GROUP BY series ORDER BY threads))
    || printf('. Working set %.4g MiB, 2 MiB pages.', (SELECT max(bytes) / 1048576.0 FROM figure));
