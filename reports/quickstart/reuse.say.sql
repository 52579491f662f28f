WITH big AS (
    SELECT *, (SELECT count(*) FROM figure WHERE text_kind = 'real') > 0 AS has_real
    FROM figure WHERE compress = 'on' AND tokens = (SELECT max(tokens) FROM figure WHERE compress = 'on')
), spans AS (
    SELECT gram, min(distinct_percent) AS low, max(distinct_percent) AS high FROM big
    WHERE text_kind = 'real' OR NOT has_real GROUP BY gram
), others AS (
    SELECT corpus, max(distinct_percent) AS high FROM big
    WHERE text_kind <> 'real' AND has_real GROUP BY corpus
), pairs AS (
    SELECT n.gram, n.corpus, n.tokens, n.distinct_percent - y.distinct_percent AS saved
    FROM figure y JOIN figure n USING (gram, corpus, tokens)
    WHERE y.compress = 'on' AND n.compress = 'off'
)
SELECT coalesce((SELECT printf('In batches of %s tokens (K = %d, %s rows per head) the rows looked up that are distinct '
            || 'are, %s: ', printf('%,d', tokens), heads, printf('%,d', rows_per_head),
            iif(has_real, 'over the corpora of real text', 'over the corpora'))
        FROM big LIMIT 1), 'No point with compression on')
    || coalesce((SELECT group_concat(printf('%d-grams %s%.1f %%', gram, iif(low < high, printf('%.1f to ', low), ''), high), ', ')
        FROM (SELECT * FROM spans ORDER BY gram)), '')
    || coalesce((SELECT '; for comparison, at most ' || group_concat(printf('%.1f %% (%s)', high, corpus), ', ')
        FROM (SELECT * FROM others ORDER BY high DESC)), '')
    || coalesce((SELECT printf('. Compressing token ids lowers the share most for %s, %d-grams, %s tokens: by %.1f '
            || 'percentage points', corpus, gram, printf('%,d', tokens), saved)
        FROM pairs WHERE saved > 0 ORDER BY saved DESC, gram, corpus LIMIT 1), '')
    || '.';
