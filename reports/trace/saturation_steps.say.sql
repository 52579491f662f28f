SELECT group_concat(printf('%s: %.1f %% on average, %.1f to %.1f %%', series, mean, lo, hi), '; ')
    || printf('; %d marks in %d steps.', (SELECT sum(marks) FROM figure), (SELECT count(DISTINCT step) FROM figure))
FROM (SELECT series, avg(mean) AS mean, min(lo) AS lo, max(hi) AS hi FROM figure GROUP BY series ORDER BY min(layer));
