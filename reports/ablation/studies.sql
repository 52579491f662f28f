-- What was trained; runs that may be compared share a row. Figures of one kind of models show the first.
-- empty: No training run in this database.
WITH named AS (
    SELECT *, iif(main, study, 'other learning rates, balancing and updates: for comparisons of training') AS models FROM v_train WHERE NOT again
)
SELECT models, text, count(*) AS runs, count(DISTINCT arm) AS arms, count(DISTINCT seed) AS seeds,
    sum(outcome = 'failed') AS diverged, coalesce(sum(collapsed > 0), 0) AS "collapsed routers", printf('%.2f to %.2f', min(load_max), max(load_max)) AS "busiest expert",
    printf('%.2f', sum(cpu_s) / 3600) AS "CPU hours"
FROM named GROUP BY models, text ORDER BY max(main) DESC, models = (SELECT study FROM most_runs) DESC, count(*) DESC, models;
