SELECT 'Hidden states are synthetic and come from no trained model. Mean gate: '
    || group_concat(printf('layer %d %.3f', layer, mean), ', ') || printf(' (%d streams).', max(streams))
FROM (SELECT layer, sum(gate * n) / sum(n) AS mean, count(DISTINCT stream) AS streams FROM figure GROUP BY layer ORDER BY layer);
