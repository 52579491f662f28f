WITH sides AS (
    SELECT panel, min(rowid) AS place, tokens, max(hidden) FILTER (WHERE series LIKE 'first alone%') AS alone, max(hidden) FILTER (WHERE series LIKE 'first of%') AS first,
        max(hidden) FILTER (WHERE series LIKE 'second%') AS second
    FROM figure GROUP BY panel, tokens
)
SELECT printf('Before layers %d and %d: ', max(layer), max(layer) + max(apart))
    || (SELECT group_concat(part, '; ') FROM (
            SELECT printf('%s at %d token%s %.0f and %.0f %% hidden', panel, tokens, iif(tokens = 1, '', 's'), 100 * first, 100 * second)
                || coalesce(printf(' (the first alone %.0f)', 100 * alone), '') AS part
            FROM sides s WHERE tokens IN ((SELECT min(tokens) FROM sides l WHERE l.panel = s.panel), (SELECT max(tokens) FROM sides l WHERE l.panel = s.panel))
            ORDER BY place))
    || '.' || coalesce(' Layers take ' || max(pace) || ' µs each (emulated).', '')
FROM figure;
