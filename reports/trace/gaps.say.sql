SELECT group_concat(printf('%s: %d gaps, %.4g ms in all, the longest %.4g ms', series, n, total / 1000, longest / 1000), '; ') || '.'
FROM (SELECT series, sum(gaps) AS n, sum(sum_us) AS total, max(longest_us) AS longest FROM figure GROUP BY series ORDER BY min(rowid));
