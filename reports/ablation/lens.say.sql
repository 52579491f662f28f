SELECT (SELECT max(models) FROM figure) || coalesce((SELECT group_concat(printf('; layer %d: %s %.2f, %s %.2f', m.x, m.series, m.kl, e.series, e.kl), '')
    FROM figure m JOIN figure e ON e.x = m.x AND e.part = 'mean' AND e.series LIKE 'rho%'
    WHERE m.part = 'mean' AND m.series LIKE 'pure MoE%'), ': one kind of model alone') || '.';
