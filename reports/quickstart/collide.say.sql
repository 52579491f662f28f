SELECT printf('In %s tokens of %s, with %s rows per head, a used row stands for %s%.3g different n-grams. ',
        printf('%,d', f.tokens), f.corpus, printf('%,d', f.rows_per_head),
        (SELECT iif(min(ngrams_per_row) < max(ngrams_per_row), printf('%.3g to ', min(ngrams_per_row)), '') FROM figure),
        (SELECT max(ngrams_per_row) FROM figure))
    || printf('Two different n-grams share at most %d of up to %d heads, and the arithmetic allows %d: ',
        (SELECT max(heads_shared) FROM figure), (SELECT max(heads) FROM figure), (SELECT max(heads_bound) FROM figure))
    || CASE WHEN (SELECT count(*) FROM figure WHERE heads_shared > heads_bound) > 0
        THEN printf('%d points break the bound', (SELECT count(*) FROM figure WHERE heads_shared > heads_bound))
        ELSE 'no point breaks the bound' END
    || coalesce((SELECT printf('. At K = %d %.1f %% of the %d-grams share no row of any head with another; at K = %d %.1f %%',
            a.heads, a.alone_percent, a.gram, b.heads, b.alone_percent)
        FROM (SELECT * FROM figure WHERE gram = (SELECT max(gram) FROM figure) ORDER BY heads LIMIT 1) a,
            (SELECT * FROM figure WHERE gram = (SELECT max(gram) FROM figure) ORDER BY heads DESC LIMIT 1) b
        WHERE a.heads < b.heads), '')
    || '.'
FROM figure f LIMIT 1;
