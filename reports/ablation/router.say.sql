SELECT group_concat(printf('%s of %s: lowest at %g (%+.4f), busiest expert %.2f times the mean there', iif(axis = 'lr', 'learning rate', 'bias step'),
    series, x, difference, load_max), '; ') || '.'
FROM (SELECT *, row_number() OVER (PARTITION BY axis, series ORDER BY difference) AS place FROM figure WHERE part = 'mean') WHERE place = 1;
