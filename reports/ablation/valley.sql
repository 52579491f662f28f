-- Tests of a valley over rho, fixed before the runs; never a quadratic fit.
-- empty: No curve over rho with the places that the tests need.
WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND memory = 0 AND loss IS NOT NULL
), curves AS (
    SELECT rest, max(budget) AS budget, valley_fixed(rho, seed, loss, 0.4, 0.8, 1) AS a, valley_split(rho, seed, loss) AS b,
        lowest(rho, seed, loss) AS m, spread(rho, seed, loss) AS s, count(DISTINCT rho) AS places
    FROM runs GROUP BY rest HAVING count(DISTINCT rho) >= 2
)
SELECT printf('%g', budget) AS "tokens per parameter", printf('%d', places) AS "places",
    'the paper''s contrasts: L(1) - L(.8), L(.4) - L(.8)' AS test,
    printf('%+.4f (%+.4f to %+.4f)', a ->> '$.right.mean', a ->> '$.right.lo', a ->> '$.right.hi') AS "right flank",
    printf('%+.4f (%+.4f to %+.4f)', a ->> '$.left.mean', a ->> '$.left.lo', a ->> '$.left.hi') AS "left flank",
    a ->> '$.n_testing' AS seeds, printf('%.4f', a ->> '$.p') AS p,
    iif(a ->> '$.claimed', 'a valley at .8', 'no valley at .8 shown') AS result
FROM curves WHERE a IS NOT NULL
UNION ALL
SELECT printf('%g', budget), printf('%d', places), 'valley chosen on half of the seeds, both ends tested on the other half',
    iif(b ->> '$.valley' IS NULL, '', printf('%+.4f (%+.4f to %+.4f)', b ->> '$.right.mean', b ->> '$.right.lo', b ->> '$.right.hi')),
    iif(b ->> '$.valley' IS NULL, '', printf('%+.4f (%+.4f to %+.4f)', b ->> '$.left.mean', b ->> '$.left.lo', b ->> '$.left.hi')),
    b ->> '$.n_testing', printf('%.4f', b ->> '$.p'),
    CASE WHEN b ->> '$.valley' IS NULL THEN 'lowest at an end of the curve: no claim'
        WHEN b ->> '$.claimed' THEN printf('a valley at %g', b ->> '$.valley')
        ELSE printf('no valley at %g shown', b ->> '$.valley') END
FROM curves WHERE b IS NOT NULL
UNION ALL
SELECT printf('%g', budget), printf('%d', places), 'where the lowest mean lies, bootstrap over seeds (no test)', '', '', m ->> '$.n_seeds', '',
    printf('%g, 95 %% interval %g to %g; not told apart from it: %s', m ->> '$.best', m ->> '$.lo', m ->> '$.hi',
        (SELECT group_concat(printf('%g', value), ', ') FROM json_each(m, '$.tied')))
FROM curves WHERE m IS NOT NULL AND places >= 3
UNION ALL
SELECT printf('%g', budget), printf('%d', places), 'spread of a run after pairing (sigma)', '', '', (s ->> '$.df') || ' df', '',
    printf('%.4f nats, 95 %% interval %.4f to %.4f', s ->> '$.sigma', s ->> '$.lo', s ->> '$.hi')
FROM curves WHERE s ->> '$.sigma' IS NOT NULL
