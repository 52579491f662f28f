SELECT printf('%d comparisons of one variable; %d of them have an interval that leaves out 0 (before correction for their number)',
        count(*), count(*) FILTER (WHERE lo > 0 OR hi < 0))
    || coalesce((SELECT printf('. The largest: %s, %+.4f (%+.4f to %+.4f, %d seeds)', name, y, lo, hi, n)
        FROM figure WHERE part = 'mean' AND (lo > 0 OR hi < 0) ORDER BY abs(y) DESC LIMIT 1), '') || '.'
FROM figure WHERE part = 'mean';
