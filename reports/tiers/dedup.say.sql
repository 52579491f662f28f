WITH s AS (
    SELECT series, min(rowid) AS place, max(pays_from) AS pays_from, max(share) AS most, max(ratio) AS best,
        max(share) FILTER (WHERE sure < 0) AS costs_to, min(ratio) AS worst
    FROM figure GROUP BY series
), grown AS ( -- batches of text with the share that pays
    SELECT series, corpus, orders, min(tokens) AS tokens FROM figure f
    WHERE sure > 0 AND share >= pays_from AND NOT EXISTS (SELECT 1 FROM figure g WHERE g.series = f.series AND g.corpus = f.corpus AND g.orders = f.orders
        AND g.tokens > f.tokens AND g.ratio < 1)
    GROUP BY series, corpus, orders
)
SELECT group_concat(part, ' ') || ' Pays and costs mean that the 95 % interval of the ratio lies above 1 or below.'
FROM (SELECT upper(substr(series, 1, 1)) || substr(series, 2) || ': ' || CASE
        WHEN pays_from IS NULL AND costs_to IS NULL THEN printf('no difference up to %.0f %% of duplicates.', most)
        WHEN pays_from IS NULL THEN printf('it does not pay up to %.0f %% of duplicates, and a batch takes up to %.2f times as long.', most, 1 / worst)
        ELSE CASE WHEN costs_to >= 0.5 THEN printf('it costs up to %.0f %% of duplicates and ', costs_to) WHEN costs_to >= 0 THEN 'it costs without duplicates and ' ELSE 'it ' END || printf('pays from %.0f %% on', pays_from)
            || coalesce((SELECT ' (' || group_concat(printf('%s, %s-grams: %s tokens', corpus, iif(orders = '2-2', '2', '2 to 4'), tokens), '; ') || ')'
                FROM (SELECT * FROM grown g WHERE g.series = s.series ORDER BY orders DESC, corpus)), '') || printf(', %.3g times as fast at best.', best)
        END AS part
      FROM s ORDER BY place);
