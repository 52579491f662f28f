WITH bandwidth AS (SELECT * FROM figure WHERE panel = 'bandwidth'), overlap AS (SELECT * FROM figure WHERE panel = 'overlap'),
budget AS (SELECT * FROM figure WHERE panel = 'budget'), saturation AS (SELECT * FROM figure WHERE panel = 'saturation')
SELECT coalesce((SELECT printf('With hold = %s and %s tokens a call the gather reads from %.2f GB/s (%s, %s rows per head) to %.2f GB/s (%s, %s). ',
            hi.held, hi.tokens, lo.y, lo.series, printf('%,d', lo.x), hi.y, hi.series, printf('%,d', hi.x))
        FROM (SELECT * FROM bandwidth ORDER BY y LIMIT 1) lo, (SELECT * FROM bandwidth ORDER BY y DESC LIMIT 1) hi), '')
    || coalesce((SELECT 'Overlap at ' || max(tokens) || ' tokens: ' || group_concat(part, '; ') || '. '
        FROM (SELECT series || CASE
                WHEN last_exposed IS NULL OR last_exposed < last THEN printf(' is hidden (90 %% and more) from layer %d on',
                    (SELECT min(w.x) FROM overlap w WHERE w.series = o.series AND w.x > coalesce(o.last_exposed, -1)))
                ELSE printf(' is hidden to %.0f %% at most', 100 * most) END AS part, tokens
              FROM (SELECT series, series_no, max(x) AS last, max(x) FILTER (WHERE y < 0.9) AS last_exposed, max(y) AS most, max(tokens) AS tokens
                    FROM overlap GROUP BY series) o ORDER BY series_no, series)), '')
    || coalesce((SELECT printf('The MoE of a layer takes %.1f ms at rho = %g and %.1f ms at rho = %g; the gather of a module takes %.0f µs at rho = %g and %.0f µs at rho = %g. ',
            m1.y / 1e3, m1.x, m2.y / 1e3, m2.x, g1.y, g1.x, g2.y, g2.x)
        FROM (SELECT * FROM budget WHERE series LIKE 'MoE%' ORDER BY x LIMIT 1) m1, (SELECT * FROM budget WHERE series LIKE 'MoE%' ORDER BY x DESC LIMIT 1) m2,
            (SELECT * FROM budget WHERE series LIKE 'its%' ORDER BY x LIMIT 1) g1, (SELECT * FROM budget WHERE series LIKE 'its%' ORDER BY x DESC LIMIT 1) g2), '')
    || coalesce((SELECT 'In the gate, ' || group_concat(part, '; ') || ' (hidden states are synthetic and come from no trained model). '
        FROM (SELECT printf('with %s %.0f %% of the gates are saturated at a cosine of %g and %.0f %% at %g', series, lo_y, lo_x, hi_y, hi_x) AS part
              FROM (SELECT series, min(x) AS lo_x, max(x) AS hi_x,
                        (SELECT y FROM saturation q WHERE q.series = s.series ORDER BY x LIMIT 1) AS lo_y,
                        (SELECT y FROM saturation q WHERE q.series = s.series ORDER BY x DESC LIMIT 1) AS hi_y
                    FROM saturation s GROUP BY series ORDER BY min(series_no), series))), '')
    || 'Bars are 95 % intervals of the median.';
