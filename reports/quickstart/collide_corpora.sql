-- Collisions by corpus and order, at the largest K measured for each.
-- empty: This run has no collide point.
WITH c AS (
    SELECT v.point_key, v.axes_json ->> '$.corpus' AS corpus, CAST(v.axes_json ->> '$.order' AS INTEGER) AS gram,
        CAST(v.axes_json ->> '$.heads' AS INTEGER) AS heads, CAST(v.axes_json ->> '$.rows' AS INTEGER) AS rows_per_head,
        CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens,
        max(v.median) FILTER (WHERE v.metric = 'ngrams') AS ngrams,
        max(v.median) FILTER (WHERE v.metric = 'ngrams_per_row') AS per_row,
        max(v.median) FILTER (WHERE v.metric = 'heads_shared_max') AS shared,
        max(v.median) FILTER (WHERE v.metric = 'heads_shared_bound') AS bound,
        max(v.median) FILTER (WHERE v.metric = 'pairs_all_heads') AS all_heads,
        max(v.median) FILTER (WHERE v.metric = 'equal_mixes') AS mixes,
        max(v.median) FILTER (WHERE v.metric = 'alone_share') AS alone
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'collide' AND v.outcome = 'measured'
    GROUP BY v.point_key
), ranked AS (
    SELECT c.*, row_number() OVER (PARTITION BY corpus, gram, rows_per_head ORDER BY heads DESC, tokens DESC) AS place FROM c
)
SELECT corpus, gram AS "order", heads AS K, printf('%,d', rows_per_head) AS "rows per head",
    printf('%,d', ngrams) AS "n-grams", printf('%.2f', per_row) AS "per used row",
    printf('%d', shared) AS "heads shared", printf('%d', bound) AS bound,
    printf('%,d', all_heads) AS "pairs sharing all", printf('%,d', mixes) AS "equal 64-bit mixes",
    printf('%.1f %%', 100 * alone) AS "share no row"
FROM ranked
WHERE place = 1
ORDER BY corpus, gram, rows_per_head;
