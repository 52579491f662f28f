SELECT group_concat(printf('%s: mean gate %.2f in the rarest tenth and %.2f in the most frequent one, saturated (at most 0.05 or at least 0.95) %.1f %% and %.1f %%', panel, a, b, c, d), '; ') || ' (means over streams).'
FROM (SELECT panel, avg(value) FILTER (WHERE measure = 'mean' AND step = 0) AS a, avg(value) FILTER (WHERE measure = 'mean' AND step = 9) AS b,
    avg(value) FILTER (WHERE measure = 'saturated05' AND step = 0) AS c, avg(value) FILTER (WHERE measure = 'saturated05' AND step = 9) AS d FROM figure GROUP BY panel ORDER BY min(formula) DESC, min(layer));
