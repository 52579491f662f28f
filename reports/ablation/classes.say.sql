SELECT printf('%s: the gain is largest for class %s (%+.3f nats) and smallest for %s (%+.3f).', a.models, a.what, a.difference, b.what, b.difference)
FROM (SELECT * FROM figure WHERE part = 'mean' AND series NOT LIKE '%silenced%' ORDER BY difference LIMIT 1) a,
    (SELECT * FROM figure WHERE part = 'mean' AND series NOT LIKE '%silenced%' ORDER BY difference DESC LIMIT 1) b;
