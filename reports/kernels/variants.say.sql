SELECT (SELECT iif(count(DISTINCT tokens) = 1, printf('The best of each at %d tokens: ', max(tokens)),
        'The best of each at the larger number of tokens: ') FROM figure)
    || (SELECT group_concat(printf('%s %s with %.0f %% of its roof', experiment, variant, percent), '; ')
        FROM (SELECT *, row_number() OVER (PARTITION BY experiment, backend ORDER BY tokens DESC, percent DESC) AS first FROM figure ORDER BY place)
        WHERE first = 1)
    || '. A roof moves the same bytes without the work, or is the best library call (above 100 %: faster than it).';
