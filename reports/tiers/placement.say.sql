WITH series AS (
    SELECT panel, series, backend, store, residency, tokens, min(rowid) AS place, min(layer) FILTER (WHERE layer > 0) AS first,
        max(layer) FILTER (WHERE hidden < 0.9) AS last_exposed, max(layer) AS last
    FROM figure GROUP BY panel, series
)
SELECT group_concat(sentence, ' ') || ' Hidden means 90 % and more.'
FROM (SELECT printf('Layers %s: ', panel) || group_concat(part, '; ') || '.' AS sentence
      FROM (SELECT panel, place, printf('at %d tokens layer %d is %.0f %% exposed from %s', tokens, coalesce(first, 0),
                100 * (1 - (SELECT f.hidden FROM figure f WHERE f.panel = s.panel AND f.series = s.series AND f.layer = coalesce(s.first, 0))),
                iif(store = 'memory', 'memory', store || ' (' || residency || ')') || iif(backend = 'cpu', '', ', ' || backend))
                || CASE WHEN last_exposed IS NULL THEN ', hidden from the first layer on' WHEN last_exposed = last THEN ', never hidden up to layer ' || last
                    ELSE ', hidden from layer ' || (SELECT min(f.layer) FROM figure f WHERE f.panel = s.panel AND f.series = s.series AND f.layer > s.last_exposed) || ' on' END AS part
            FROM series s ORDER BY place)
      GROUP BY panel ORDER BY min(place));
