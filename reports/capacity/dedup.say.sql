SELECT (SELECT group_concat(part, '; ') FROM (SELECT panel || ': ' || group_concat(printf('%s %.2f', replace(series, ' (simulated)', ''), share), ', ') || ' left at ' || CAST(tokens AS INTEGER) || ' tokens' AS part
    FROM figure f WHERE tokens = 4096 GROUP BY panel ORDER BY panel DESC)) || '. Tokens in a row (prefill) repeat n-grams far more than one token of each stream (decode) does.';
