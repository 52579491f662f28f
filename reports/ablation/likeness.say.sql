SELECT coalesce((SELECT max(models) || printf(', %d most similar of %d layers', max(nearest), max(layers)) FROM figure WHERE part = 'mean' AND measure = 'alignment')
    || (SELECT group_concat(printf('; layer %d: %s aligns with %.2f, the control with %.2f', e.x, e.series, e.y, m.y), '')
        FROM figure m JOIN figure e ON e.x = m.x AND e.part = 'mean' AND e.measure = 'alignment' AND e.series LIKE 'rho%'
        WHERE m.part = 'mean' AND m.measure = 'alignment' AND m.series LIKE 'pure MoE%') || '.',
    'Models without their control: nothing can be said of depth.');
