SELECT (SELECT group_concat(sentence, ' ') FROM (
        SELECT upper(substr(series, 1, 1)) || substr(series, 2) || ': ' || group_concat(part, '; ') || '.' AS sentence
        FROM (SELECT series, place, printf('%s takes %.3g µs a row, %.3g read%s and %.0f B', layout, row_us, requests, iif(requests > 1.005, 's', ''), read_bytes) AS part
              FROM figure WHERE layout_no IN (1, 2)
                OR row_us = (SELECT min(f.row_us) FROM figure f WHERE f.series = figure.series)
              ORDER BY place, row_us DESC)
        GROUP BY series ORDER BY place))
    || printf(' Batches of %d tokens; a layout is named by the bytes of a row, scales included.', max(tokens))
FROM figure;
