SELECT ifnull((SELECT 'Of ' || group_concat(a.axis || '=' || a.value, ' ') || '. ' FROM axis_values a
        WHERE a.point_key = (SELECT min(point_key) FROM figure) AND NOT a.is_default AND a.axis <> 'layer'), '')
    || 'Hidden states are synthetic and come from no trained model. Mean gate: '
    || group_concat(printf('layer %d %.3f', layer, mean), ', ') || printf(' (%d streams).', max(streams))
FROM (SELECT layer, sum(gate * n) / sum(n) AS mean, count(DISTINCT stream) AS streams FROM figure GROUP BY layer ORDER BY layer);
