SELECT (SELECT printf('Another n-gram of the training text reads %.0f %% of the rows of the most frequent tenth and %.0f %% of the rarest, yet its reads are %.0f %% and %.0f %%. ',
        avg(value) FILTER (WHERE part = 'collided' AND step = 9), avg(value) FILTER (WHERE part = 'collided' AND step = 0),
        avg(value) FILTER (WHERE part = 'foreign' AND step = 9), avg(value) FILTER (WHERE part = 'foreign' AND step = 0)) FROM figure)
    || (SELECT group_concat(printf('%s: of %.0f bytes a token %.0f are gathered for nothing', series, bytes, bytes * unused / 100), '; ') || '.'
        FROM (SELECT series, max(value) FILTER (WHERE part = 'bytes') AS bytes, avg(value) FILTER (WHERE part = 'unused') AS unused
            FROM figure GROUP BY series ORDER BY min(formula) DESC, min(layer)))
    || (SELECT coalesce(printf(' The gather measured on this machine (%s) reads %.3g GB/s, so the rows of a token take %.3g ns a module, %.3g ns of them for nothing.',
            max(gather), max(gather_gbps), max(value) FILTER (WHERE part = 'bytes') / max(gather_gbps),
            max(value) FILTER (WHERE part = 'bytes') / max(gather_gbps) * avg(value) FILTER (WHERE part = 'unused') / 100),
        ' No gather of this machine is in this database: of traffic the bytes alone are known.') FROM figure);
