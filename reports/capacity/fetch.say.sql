SELECT 'Largest step whose fetch fits the smallest window (' || (SELECT printf('%s, %.4g µs', label, us) FROM figure WHERE what = 'window' ORDER BY us LIMIT 1) || '), between the steps drawn, without cache or deduplication: '
    || (SELECT group_concat(part, '; ') FROM (
        SELECT series || CASE WHEN max(us) <= room THEN printf(' more than %d tokens', max(tokens)) WHEN min(us) > room THEN ' none'
            ELSE printf(' about %d tokens', CAST(max(tokens + (room - us) / (next_us - us) * (next_tokens - tokens)) FILTER (WHERE us <= room AND next_us > room) AS INTEGER)) END AS part
        FROM (SELECT *, lead(us) OVER (PARTITION BY series ORDER BY tokens) AS next_us, lead(tokens) OVER (PARTITION BY series ORDER BY tokens) AS next_tokens, (SELECT min(us) FROM figure WHERE what = 'window') AS room FROM figure WHERE what = 'fetch')
        GROUP BY series)) || '.';
