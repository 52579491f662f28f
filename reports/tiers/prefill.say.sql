WITH fetch AS (SELECT *, min(rowid) OVER (PARTITION BY series) AS place FROM figure WHERE panel LIKE '%ms%' AND NOT computes),
layers AS (SELECT chunk, y FROM figure WHERE computes),
hidden AS (SELECT series, chunk, y FROM figure WHERE panel LIKE 'hidden%')
SELECT (SELECT group_concat(part, ' ') FROM (
        SELECT printf('%s%s: a chunk of %d tokens takes %.3g ms beside %.3g ms of its layers and hides to %.0f %%, one of %d tokens %.3g ms beside %.3g and %.0f %%; the prompt of %d tokens takes %.0f and %.0f %% longer than with its rows there.',
                upper(substr(lo.series, 1, 1)), substr(lo.series, 2), lo.chunk, lo.y, (SELECT y FROM layers l WHERE l.chunk = lo.chunk),
                (SELECT y FROM hidden h WHERE h.series = lo.series AND h.chunk = lo.chunk), hi.chunk, hi.y, (SELECT y FROM layers l WHERE l.chunk = hi.chunk),
                (SELECT y FROM hidden h WHERE h.series = hi.series AND h.chunk = hi.chunk), lo.tokens, lo.cost_percent, hi.cost_percent) AS part
        FROM fetch lo JOIN fetch hi USING (series)
        WHERE lo.chunk = (SELECT min(f.chunk) FROM fetch f WHERE f.series = lo.series) AND hi.chunk = (SELECT max(f.chunk) FROM fetch f WHERE f.series = hi.series)
            AND lo.chunk < hi.chunk
        ORDER BY lo.place))
    || ' The first chunk hides behind the layers before the module only, each other one behind the chunk before it.'
    || iif(max(paced) <> '', ' Layers are paced (emulated).', '')
FROM figure;
