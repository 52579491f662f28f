SELECT 'Symbols are medians, crosses 90th percentiles, bars end at the 99th. At ' || (SELECT min(tokens) FROM figure) || iif((SELECT min(tokens) FROM figure) = 1, ' token: ', ' tokens: ')
    || (SELECT group_concat(printf('%s %.3g µs, 99th %.3g µs', series, p50, p99), '; ') FROM (SELECT * FROM figure WHERE tokens = (SELECT min(tokens) FROM figure) ORDER BY rowid))
    || printf('. From %d to %d samples a point, so the 99th percentile is the slowest of them where there are fewer than 100.', (SELECT min(n) FROM figure), (SELECT max(n) FROM figure));
