SELECT 'More chains keep more misses in flight. '
    || (SELECT group_concat(printf('In %s: %.3g million lines a second with one chain, ' || iif(best < 1, '%.3g', '%,d') || ' with %d', series, 1000 * one, 1000 * best, chains), '; ')
        FROM (SELECT series, max(gload) AS best, chains,
                  (SELECT gload FROM figure o WHERE o.series = f.series ORDER BY chains LIMIT 1) AS one
              FROM figure f GROUP BY series ORDER BY bytes))
    || '. One thread, 2 MiB pages.';
