SELECT group_concat(part, '; ') || '.'
FROM (SELECT printf('%s of %d hold %.4g GB a rank, fetch a batch in %.4g ms, exchange gradients between replicas in %.4g ms and leave %.4g ms that nothing hides', iif(n = 1, 'Groups', 'groups'), ranks, gb, fetch_ms, replicas_ms, exposed_ms) AS part
    FROM (SELECT *, row_number() OVER (ORDER BY ranks) AS n FROM figure WHERE ranks IN (1, (SELECT min(ranks) FROM figure WHERE ranks >= 8), (SELECT max(ranks) FROM figure))) ORDER BY n);
