-- title: Collisions against heads K
-- Of the points that differ in order and K alone, the set with the most; prose when several have as many.
WITH c AS (
    SELECT v.point_key, v.kind, CAST(v.axes_json ->> '$.order' AS INTEGER) AS gram,
        CAST(v.axes_json ->> '$.heads' AS INTEGER) AS heads, CAST(v.axes_json ->> '$.rows' AS INTEGER) AS rows_per_head,
        CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens, v.axes_json ->> '$.corpus' AS corpus,
        json_remove(v.axes_json, '$.order', '$.heads') AS rest,
        max(v.median) FILTER (WHERE v.metric = 'ngrams') AS ngrams,
        max(v.median) FILTER (WHERE v.metric = 'ngrams_per_row') AS ngrams_per_row,
        max(v.median) FILTER (WHERE v.metric = 'heads_shared_max') AS heads_shared,
        max(v.median) FILTER (WHERE v.metric = 'heads_shared_bound') AS heads_bound,
        max(v.median) FILTER (WHERE v.metric = 'alone_share') AS alone_share
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'collide' AND v.outcome = 'measured'
    GROUP BY v.point_key
)
SELECT printf('%d-grams', gram) || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, gram, heads,
    ngrams, ngrams_per_row, heads_shared, heads_bound, 100 * alone_share AS alone_percent, rows_per_head, tokens, corpus,
    point_key
FROM c
WHERE rest = (SELECT rest FROM c GROUP BY rest ORDER BY count(*) DESC, corpus = 'prose' DESC, rest LIMIT 1)
ORDER BY gram, kind, heads;
