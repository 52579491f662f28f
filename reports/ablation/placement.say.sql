SELECT printf('Best single layer here: %s (%s nats against the mean over single layers, %d seeds); worst: %s (%s)', b.layers, interval(b.y, b.lo, b.hi), b.n,
        w.layers, interval(w.y, w.lo, w.hi))
    || coalesce((SELECT printf('. Best pair: %s (%s)', layers, interval(y, lo, hi)) FROM figure WHERE part = 'mean' AND instr(layers, '+') ORDER BY y LIMIT 1), '')
    || '. The paper''s best single layer is its layer 2, which is 1 counted from 0. Intervals hold 95 % and are not corrected for their number.'
FROM (SELECT * FROM figure WHERE part = 'mean' AND NOT instr(layers, '+') ORDER BY y LIMIT 1) b,
    (SELECT * FROM figure WHERE part = 'mean' AND NOT instr(layers, '+') ORDER BY y DESC LIMIT 1) w;
