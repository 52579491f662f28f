SELECT ifnull((SELECT 'Of this run: ' || group_concat(printf('%s, layer %s: %.3f', series, layer, hidden), '; ') || '. ' FROM figure WHERE NOT imported), '')
    || ifnull((SELECT 'Imported: ' || group_concat(printf('%s, layer %s: %.3f', replace(series, ' (imported)', ''), layer, hidden), '; ') || '. '
        FROM figure WHERE imported), '')
    || 'Crosses are imported traces, of other machines.';
