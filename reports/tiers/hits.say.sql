SELECT printf('Policy %s over %s tokens of each corpus, K heads of an order together. ', max(policy), max(stream_tokens))
    || (SELECT group_concat(part, '; ') FROM (
            SELECT panel || ' with ' || printf('%,d', cache_rows) || ' rows: ' || group_concat(printf('%s %.0f %%', series, hit_percent), ', ') AS part
            FROM (SELECT * FROM figure f WHERE cache_rows IN (SELECT min(cache_rows) FROM figure UNION SELECT max(cache_rows) FROM figure) ORDER BY rowid)
            GROUP BY panel, cache_rows ORDER BY panel, cache_rows))
    || printf('. Of all look-ups %.0f to %.0f %% ask for a row for the first time: no cache answers those.', min(cold_percent), max(cold_percent))
FROM figure;
