SELECT printf('Reading rows whose ids are known reaches %.0f to %.0f %% of the rate of the best chains', min(100 * c.ns / r.ns), max(100 * c.ns / r.ns))
    || iif(count(g.ns) = 0, '', printf('; the roof of the gather, which stores %s output besides, %.0f to %.0f %% (fastest of its family: %s)',
        max(g.out), min(100 * c.ns / g.ns), max(100 * c.ns / g.ns), group_concat(DISTINCT g.access)))
    || '. All of a shape walk the same memory in one worker.'
FROM (SELECT * FROM figure WHERE series = 'best chains') c
JOIN (SELECT * FROM figure WHERE series = 'reading alone') r USING (place)
LEFT JOIN (SELECT * FROM figure WHERE series = 'gather roof') g USING (place);
