SELECT group_concat(printf('%s: mean cosine of two streams %.3f at entry of layer 0 and %.3f at the output%s', series, a, b, ifnull(c, '')), '; ') || '.'
FROM (SELECT f.series, avg(value) FILTER (WHERE part = 'stream_cosine' AND layer = 0) AS a,
    avg(value) FILTER (WHERE part = 'stream_cosine' AND layer = (SELECT max(layer) FROM figure)) AS b,
    (SELECT ', of gates correlated ' || group_concat(printf('%.2f in layer %d', v, layer), ' and ') FROM (SELECT layer, avg(value) AS v FROM figure g
        WHERE g.series = f.series AND g.part = 'gate_correlation' GROUP BY layer ORDER BY layer)) AS c
    FROM figure f GROUP BY f.series ORDER BY f.series DESC);
