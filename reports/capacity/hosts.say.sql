SELECT group_concat(part, '; ') || '. Counts are whole replicas on whole hosts, as many as the tables ask for at least; what misses the mean asked for, or does not fit, is marked.'
FROM (SELECT traffic || ' at ' || printf('%,d', CAST(round(target) AS INTEGER)) || ' tokens/s: ' || group_concat(path || ' ' || CAST(hosts AS INTEGER) || coalesce(' (' || nullif(iif(misses, 'misses', '') || iif(misses AND unfit, ', ', '') || iif(unfit, 'does not fit', ''), '') || ')', ''), ', ') AS part
    FROM figure WHERE target > 0.99e6 AND target < 1.01e6 GROUP BY traffic);
