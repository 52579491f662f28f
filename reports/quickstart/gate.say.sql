WITH p AS (
    SELECT formula, alignment, max(sat_05_percent) AS sat_05, max(sat_10_percent) AS sat_10, min(rowid) AS place
    FROM figure GROUP BY formula, alignment
)
SELECT 'Hidden states are synthetic, with cosine a to the keys, and come from no trained model. Gates at or beyond 0.05 '
    || 'and 0.95 (0.1 and 0.9): '
    || (SELECT group_concat(part, '; ')
        FROM (SELECT formula || ' ' || group_concat(printf('%s (%s) at a = %g', iif(sat_05 IS NULL, 'unknown', printf('%.1f %%', sat_05)),
                iif(sat_10 IS NULL, 'unknown', printf('%.1f %%', sat_10)), alignment), ', ') AS part
              FROM (SELECT * FROM p ORDER BY place) GROUP BY formula ORDER BY min(place)))
    || '.';
