SELECT group_concat(part, '; ') || '. Each symbol is the time that one limit alone would take for one layer; the longest of a tier binds it, as the plan says.'
FROM (SELECT traffic || ' through ' || path || ': ' || replace(replace(series, ' (simulated)', ''), ' (measured)', '') || ' of ' || tier || printf(', %.4g µs', us) AS part
    FROM (SELECT *, row_number() OVER (PARTITION BY path, traffic ORDER BY us DESC) AS place FROM figure) WHERE place = 1 ORDER BY y);
