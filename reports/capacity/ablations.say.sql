SELECT (SELECT group_concat(part, '; ') FROM (SELECT replace(series, ' (published)', '') || ': best at ' || iif(panel = 'rho', printf('rho %.3g %%', x), printf('layer %g', x)) AS part FROM figure WHERE y = 0 AND panel <> 'gate' ORDER BY panel DESC, series))
    || printf('. In the paper, moving one module from layer %d to 12 costs %.4f, and pure experts cost %.4f and %.4f more than the best mix. ',
        (SELECT x FROM figure WHERE panel = 'layer' AND y = 0 AND series LIKE 'one module%'), (SELECT y FROM figure WHERE panel = 'layer' AND x = 12 AND series LIKE 'one module%'),
        (SELECT min(y) FROM figure WHERE panel = 'rho' AND x = 100 AND series LIKE '%published%'), (SELECT max(y) FROM figure WHERE panel = 'rho' AND x = 100 AND series LIKE '%published%'))
    || coalesce((SELECT group_concat(part, ' ') FROM (SELECT printf('Own %s: %d runs of small models, of the sweep %s.', panel, sum(runs), group_concat(DISTINCT sweeps)) AS part FROM figure WHERE series LIKE 'own%' GROUP BY panel ORDER BY panel DESC)),
        'This database holds no curve of own runs (three shares of experts or layers with the same seed).')
    || ' ' || coalesce((SELECT printf('Of the gates measured here %.0f to %.0f %% are saturated, by how well keys and states agree.', min(y), max(y)) FROM figure WHERE panel = 'gate' HAVING count(*) > 0), 'It holds no gates of a layer.');
