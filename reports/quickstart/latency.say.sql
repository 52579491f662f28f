WITH ends AS (
    SELECT experiment, backend, experiment || iif(backend = 'cpu', '', ' on ' || backend) || iif(kind = 'measured', '', ' (' || kind || ')') AS name, min(tokens) AS first, max(tokens) AS last,
        (SELECT us_per_token FROM figure f WHERE f.experiment = g.experiment AND f.backend = g.backend AND f.kind = g.kind ORDER BY tokens LIMIT 1) AS at_first,
        (SELECT us_per_token FROM figure f WHERE f.experiment = g.experiment AND f.backend = g.backend AND f.kind = g.kind ORDER BY tokens DESC LIMIT 1) AS at_last,
        min(rowid) AS place
    FROM figure g GROUP BY experiment, backend, kind
)
SELECT 'Microseconds per token in the smallest and largest batch: '
    || (SELECT group_concat(printf('%s %s (%d token%s)', name,
            printf(iif(at_first < 100, '%.3g', '%,d'), at_first), first, iif(first = 1, '', 's'))
            || iif(first = last, '', printf(' and %s (%d)', printf(iif(at_last < 100, '%.3g', '%,d'), at_last), last)), '; ')
        FROM (SELECT * FROM ends ORDER BY place))
    || coalesce((SELECT printf('. The most expensive operation per token in the largest batches is %s', name)
        FROM ends WHERE experiment <> 'chain' ORDER BY backend, at_last DESC LIMIT 1), '')
    || coalesce((SELECT printf('; the whole chain takes %.1f ms for %d token%s', at_last * last / 1000, last,
            iif(last = 1, '', 's'))
        FROM ends WHERE experiment = 'chain' ORDER BY backend LIMIT 1), '')
    || '. Bars are 95 % intervals of the median.';
