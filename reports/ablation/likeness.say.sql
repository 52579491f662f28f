SELECT coalesce((SELECT group_concat(printf('layer %d: %s aligns with %.2f, the control with %.2f', e.x, e.series, e.y, m.y), '; ') || '.'
    FROM figure m JOIN figure e ON e.x = m.x AND e.part = 'mean' AND e.series LIKE 'rho%'
    WHERE m.part = 'mean' AND m.series LIKE 'pure MoE%'), 'Models without their control: nothing can be said of depth.');
