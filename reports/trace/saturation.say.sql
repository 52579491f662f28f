SELECT 'Gates at or below 0.05 or at or above 0.95 (0.1 or 0.9): '
    || group_concat(printf('%s %.1f to %.1f %% (%.1f to %.1f %%)', series, lo, hi, lo10, hi10), '; ') || ', over streams.'
FROM (SELECT series, min(at_05) AS lo, max(at_05) AS hi, min(at_10) AS lo10, max(at_10) AS hi10 FROM figure
      GROUP BY series ORDER BY min(layer));
