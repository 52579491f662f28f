SELECT group_concat(printf('%s: in the end bins of the gate lie %.1f %% (rarest tenth) and %.1f %% (most frequent tenth)', panel, a, b), '; ') || '.'
FROM (SELECT panel, sum(percent) FILTER (WHERE series LIKE 'rarest%' AND bin IN (0, 79)) AS a, sum(percent) FILTER (WHERE series LIKE 'most%' AND bin IN (0, 79)) AS b
    FROM figure WHERE part = 'gate' GROUP BY panel ORDER BY min(formula) DESC, min(layer));
