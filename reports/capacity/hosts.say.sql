SELECT group_concat(part, '; ') || '. Counts are whole replicas on whole hosts, as many as the tables ask for at least; what misses the mean asked for, does not fit, or is not known to, is marked.'
FROM (SELECT traffic || ' at ' || printf('%,d', CAST(round(target) AS INTEGER)) || ' tokens/s: ' || group_concat(path || ' ' || CAST(hosts AS INTEGER) || CASE WHEN misses THEN ' (misses' || coalesce(', ' || unfit, '') || ')' ELSE coalesce(' (' || unfit || ')', '') END, ', ') AS part
    FROM figure WHERE target > 0.99e6 AND target < 1.01e6 GROUP BY traffic);
