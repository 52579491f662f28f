SELECT 'Largest batch whose fetch fits the smallest window (' || (SELECT printf('%s, %.4g µs', label, us) FROM figure WHERE what = 'window' ORDER BY us LIMIT 1) || '), without cache or deduplication: '
    || (SELECT group_concat(part, '; ') FROM (SELECT series || ' ' || coalesce(CAST(max(tokens) FILTER (WHERE us <= (SELECT min(us) FROM figure WHERE what = 'window')) AS INTEGER) || ' tokens', 'none') AS part
        FROM figure WHERE what = 'fetch' GROUP BY series)) || '.';
