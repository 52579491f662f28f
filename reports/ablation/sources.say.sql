SELECT printf('%s: the gain is largest on %s (%+.3f nats) and smallest on %s (%+.3f).', a.series, a.source, a.gain, b.source, b.gain)
FROM (SELECT * FROM figure WHERE part = 'mean' ORDER BY gain LIMIT 1) a,
    (SELECT * FROM figure f WHERE part = 'mean' ORDER BY gain DESC LIMIT 1) b;
