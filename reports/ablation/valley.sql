-- Tests of a valley over rho, fixed before the runs; never a quadratic fit. Runs with a collapsed router are in them.
-- empty: No curve over rho with the places that the tests need.
WITH curves AS (
    SELECT arm_label(rest) AS models, count(DISTINCT rho) AS places, count(*) AS runs, sum(collapsed > 0) AS collapsed,
        valley_fixed(rho, seed, loss, 0.4, 0.8, 1) AS a, valley_split(rho, seed, loss) AS b, lowest(rho, seed, loss) AS m, spread(rho, seed, loss) AS s
    FROM (SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND memory = 0 AND loss IS NOT NULL)
    GROUP BY rest HAVING count(DISTINCT rho) >= 2
), tests AS (
    SELECT models, places, collapsed, 1 AS place, 'the paper''s contrasts: L(1) - L(.8), L(.4) - L(.8)' AS test, a ->> '$.right' AS r, a ->> '$.left' AS l,
        a ->> '$.n_testing' AS seeds, iif(a ->> '$.n_testing' > 1, a ->> '$.p', NULL) AS p,
        CASE WHEN a ->> '$.n_testing' < 2 THEN 'too few seeds' WHEN a ->> '$.claimed' THEN 'a valley at .8' ELSE 'no valley at .8 shown' END AS result
    FROM curves WHERE a IS NOT NULL
    UNION ALL
    SELECT models, places, collapsed, 2, 'valley chosen on half of the seeds, both ends tested on the other half', b ->> '$.right', b ->> '$.left',
        coalesce(printf('%d chose, %d tested', b ->> '$.n_choosing', b ->> '$.n_testing'), ''),
        iif(b ->> '$.valley' IS NOT NULL AND b ->> '$.n_testing' > 1, b ->> '$.p', NULL),
        CASE WHEN b IS NULL THEN 'too few seeds that have all places' WHEN b ->> '$.valley' IS NULL THEN 'lowest at an end of the curve: no claim'
            WHEN b ->> '$.claimed' THEN printf('a valley at %g', b ->> '$.valley')
            ELSE printf('no valley at %g shown', b ->> '$.valley') END
    FROM curves WHERE places >= 3
    UNION ALL
    SELECT models, places, collapsed, 3, 'where the lowest mean lies, bootstrap over seeds (no test)', '{}', '{}', m ->> '$.n_seeds', NULL,
        printf('%g', m ->> '$.best') || coalesce(printf(', 95 %% interval %g to %g', m ->> '$.lo', m ->> '$.hi'), ', too few seeds for an interval') ||
            printf('; not told apart from it: %s', (SELECT group_concat(printf('%g', value), ', ') FROM json_each(m, '$.tied')))
    FROM curves WHERE m IS NOT NULL AND places >= 3
    UNION ALL
    SELECT models, places, collapsed, 4, 'spread of a run after pairing (sigma)', '{}', '{}', (s ->> '$.df') || ' df', NULL,
        printf('%.4f nats, 95 %% interval %.4f to %.4f', s ->> '$.sigma', s ->> '$.lo', s ->> '$.hi')
    FROM curves WHERE s ->> '$.sigma' IS NOT NULL
)
SELECT models, places, test, interval(r ->> '$.mean', r ->> '$.lo', r ->> '$.hi') AS "right flank",
    interval(l ->> '$.mean', l ->> '$.lo', l ->> '$.hi') AS "left flank", seeds, collapsed AS "collapsed runs", iif(p < 0.00005, '< 0.0001', printf('%.4f', p)) AS p, result
FROM tests ORDER BY models <> 'R0c, 20 tokens per parameter', models, place;
