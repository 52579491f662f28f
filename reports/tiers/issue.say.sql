-- The knee: the least number under way that gives nine tenths of the most.
WITH best AS (
    SELECT *, row_number() OVER (PARTITION BY panel, series ORDER BY rows_per_s DESC) AS place, max(rows_per_s) OVER (PARTITION BY panel, series) AS most,
        max(under_way) OVER (PARTITION BY panel, series) AS last, min(rowid) OVER (PARTITION BY panel) AS panel_no
    FROM figure
), said AS (
    SELECT b.*, (SELECT min(f.under_way) FROM figure f WHERE f.panel = b.panel AND f.series = b.series AND f.rows_per_s >= 0.9 * b.most) AS knee
    FROM best b WHERE place = 1
)
SELECT (SELECT group_concat(sentence, ' ') FROM (
        SELECT upper(substr(panel, 1, 1)) || substr(panel, 2) || ': ' || group_concat(part, '; ') || '.' AS sentence
        FROM (SELECT panel, panel_no, printf('%s reaches %s rows/s with %d under way', series,
                    iif(most < 999500, printf('%.3g thousand', most / 1e3), printf('%.3g million', most / 1e6)), under_way)
                || CASE WHEN knee = last THEN ', still rising' WHEN knee = under_way THEN '' ELSE printf(', nine tenths of it from %d on', knee) END AS part
              FROM said ORDER BY panel_no, most DESC)
        GROUP BY panel ORDER BY panel_no))
    || printf(' A batch is the rows of %s token%s (%s).', (SELECT group_concat(tokens, ', ') FROM (SELECT DISTINCT tokens FROM figure ORDER BY tokens)), iif(max(tokens) = 1, '', 's'), max(row_format) || iif(max(row_format) = 'fp8', ', scales apart' || iif(max(scales) = 'memory', ' and in memory', ''), ''))
FROM figure;
