SELECT 'Median and 99th percentile of a call at the smallest batch: '
    || (SELECT group_concat(printf('%s %s and %s us (%s, %d samples of %s)', series, printf(iif(p50 < 100, '%.3g', '%,d'), p50),
            printf(iif(p99 < 100, '%.3g', '%,d'), p99), variant, n, iif(inner = 1, 'one call', printf('up to %,d calls', inner))), '; ')
        FROM figure f WHERE tokens = (SELECT min(tokens) FROM figure g WHERE g.series = f.series))
    || '. Where a sample is the mean of many calls, its percentiles tell how stretches of a millisecond differ, not single calls.';
