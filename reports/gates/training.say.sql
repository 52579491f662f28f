SELECT group_concat(printf('%s: %.1f %% of the gates are at most 0.05 or at least 0.95 before training and %.1f %% after it, the mean slope goes from %.2g to %.2g', panel, a, b, c, d), '; ') || ' (means over streams).'
FROM (SELECT panel, avg(value) FILTER (WHERE measure = 'saturated05' AND step = 0) AS a, avg(value) FILTER (WHERE measure = 'saturated05' AND step = 100) AS b,
    avg(value) FILTER (WHERE measure = 'slope' AND step = 0) AS c, avg(value) FILTER (WHERE measure = 'slope' AND step = 100) AS d FROM figure GROUP BY panel ORDER BY min(formula) DESC, min(layer));
