SELECT group_concat(printf('%s: %d gaps, %.4g us in all, the longest %.4g us', series, n, total, longest), '; ') || '.'
FROM (SELECT series, sum(gaps) AS n, sum(sum_us) AS total, max(longest_us) AS longest FROM figure GROUP BY series ORDER BY min(rowid));
