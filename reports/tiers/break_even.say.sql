WITH w AS (SELECT layer, us, pace FROM figure WHERE series = 'window'),
t AS (SELECT * FROM figure WHERE series <> 'window')
SELECT coalesce((SELECT group_concat(part, '; ') || '. '
        FROM (SELECT series || ' ' || CASE
                WHEN max(tokens) FILTER (WHERE us < (SELECT min(us) FROM w)) IS NULL
                    THEN printf('takes %.3g ms for %d token%s, longer than the window of layer %d', min(us) / 1e3, min(tokens), iif(min(tokens) = 1, '', 's'), (SELECT min(layer) FROM w))
                ELSE printf('is within the window of layer %d up to %d token', (SELECT min(layer) FROM w), max(tokens) FILTER (WHERE us < (SELECT min(us) FROM w)))
                    || iif(max(tokens) FILTER (WHERE us < (SELECT min(us) FROM w)) = 1, '', 's') END AS part
              FROM t GROUP BY series ORDER BY min(place), series) WHERE (SELECT count(*) FROM w)), '')
    || coalesce((SELECT 'Windows are those of layers that take ' || max(pace) || ' µs each (emulated). ' FROM w WHERE pace IS NOT NULL), 'This run measured no window. ')
    || (SELECT printf('At %d tokens %s is fastest with %.3g ms and %s slowest with %.3g ms, both for %s rows.', lo.tokens, lo.series, lo.us / 1e3, hi.series, hi.us / 1e3, lo.row_format)
        FROM (SELECT * FROM t ORDER BY tokens DESC, us LIMIT 1) lo, (SELECT * FROM t ORDER BY tokens DESC, us DESC LIMIT 1) hi);
