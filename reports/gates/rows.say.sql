SELECT (SELECT printf('Another n-gram of the training text reads %.0f %% of the rows of the most frequent tenth and %.0f %% of the rarest, yet its reads are %.0f %% and %.0f %%. ',
        avg(value) FILTER (WHERE part = 'collided' AND step = 9), avg(value) FILTER (WHERE part = 'collided' AND step = 0),
        avg(value) FILTER (WHERE part = 'foreign' AND step = 9), avg(value) FILTER (WHERE part = 'foreign' AND step = 0)) FROM figure)
    || (SELECT group_concat(printf('%s: of %.0f bytes a token %.0f are gathered for nothing', series, bytes, bytes * unused / 100), '; ') || '.'
        FROM (SELECT series, max(value) FILTER (WHERE part = 'bytes') AS bytes, avg(value) FILTER (WHERE part = 'unused') AS unused
            FROM figure GROUP BY series ORDER BY min(formula) DESC, min(layer)));
