-- title: Does an unbalanced router explain the loss of a run?
-- empty: fewer than two seeds of any arm.
-- Every run: busiest expert in the last quarter of training against its loss less the mean of its arm.
WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE loss IS NOT NULL AND load_max IS NOT NULL
), arms AS (SELECT arm, avg(loss) AS mean, count(*) AS n FROM runs GROUP BY arm HAVING n > 1)
SELECT iif(r.suppressed_loss IS NULL, 'pure MoE', 'with Engram') || CASE WHEN min(kind) OVER () = 'measured' AND max(kind) OVER () = 'measured' THEN '' WHEN max(kind) OVER () = min(kind) OVER () THEN ' (imported)' ELSE ' (partly imported)' END AS series, r.load_max, r.loss - a.mean AS rest,
    r.dead_share, r.collapsed, r.rho, r.experts, CAST(r.seed AS INTEGER) AS seed, r.point_key
FROM runs r JOIN arms a USING (arm) ORDER BY 1, 2;
