-- title: Distinct rows in a batch, by order and corpus
-- Rows looked up once or more over rows looked up, mean over the batches of a stream. Of the points that differ in
-- batch size, corpus and compression alone, the set with the most.
WITH d AS (
    SELECT v.point_key, v.kind, CAST(substr(v.metric, 10) AS INTEGER) AS gram, v.median AS share,
        CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens, v.axes_json ->> '$.corpus' AS corpus,
        v.axes_json ->> '$.compress' AS compress, CAST(v.axes_json ->> '$.heads' AS INTEGER) AS heads,
        CAST(v.axes_json ->> '$.rows' AS INTEGER) AS rows_per_head,
        json_remove(v.axes_json, '$.tokens', '$.corpus', '$.compress') AS rest, s.kind AS text_kind
    FROM v_summary v JOIN points p USING (point_key) LEFT JOIN streams s USING (stream_digest)
    WHERE v.run_id = :run AND v.experiment = 'reuse' AND v.outcome = 'measured' AND v.metric GLOB 'distinct_[0-9]'
)
SELECT corpus || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, gram, corpus, compress,
    tokens, 100 * share AS distinct_percent, text_kind, heads, rows_per_head, point_key
FROM d
WHERE rest = (SELECT rest FROM d GROUP BY rest ORDER BY count(DISTINCT point_key) DESC, rest LIMIT 1)
ORDER BY gram, corpus, compress DESC, tokens;
