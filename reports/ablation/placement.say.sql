SELECT printf('Best layer here: %d (%+.4f against the mean over layers, %+.4f to %+.4f, %d seeds); worst: %d (%+.4f). The paper''s best is its layer 2, which is 1 counted from 0.',
    b.x, b.y, b.lo, b.hi, b.n, w.x, w.y)
FROM (SELECT * FROM figure WHERE part = 'mean' ORDER BY y LIMIT 1) b, (SELECT * FROM figure WHERE part = 'mean' ORDER BY y DESC LIMIT 1) w;
