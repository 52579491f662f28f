-- Points and the fastest variants, one line per experiment and backend.
SELECT p.experiment || iif(p.backend = 'cpu', '', ', ' || p.backend) || CASE p.kind WHEN 'measured' THEN '' ELSE ' (' || p.kind || ')' END AS experiment,
    count(*) AS points, count(*) FILTER (WHERE b.outcome = 'measured') AS measured,
    count(*) FILTER (WHERE b.outcome = 'skipped') AS skipped,
    count(*) FILTER (WHERE b.outcome IN ('failed', 'wrong')) AS "failed or wrong",
    coalesce(nullif((SELECT group_concat(DISTINCT q.variant) FROM run_points k JOIN points q USING (point_key)
        WHERE k.run_id = :run AND q.experiment = p.experiment AND q.backend = p.backend AND q.kind = p.kind AND NOT q.is_roof), ''), '-') AS variants,
    (SELECT iif(count(*), printf('%.0f to %.0f %%', min(o.best), max(o.best)), NULL)
     FROM (SELECT max(v.percent_of_roof) AS best
           FROM v_summary v JOIN points q USING (point_key)
           WHERE v.run_id = :run AND v.experiment = p.experiment AND v.backend = p.backend AND v.kind = p.kind AND NOT q.is_roof AND v.percent_of_roof IS NOT NULL
           GROUP BY json_remove(v.axes_json, '$.variant')) o) AS "roof reached",
    (SELECT iif(count(*), printf('%.2g', max(coalesce(r.max_rel, r.max_abs))), NULL)
     FROM run_points k JOIN residuals r USING (block_id, point_key) JOIN points q USING (point_key)
     WHERE k.run_id = :run AND q.experiment = p.experiment AND q.backend = p.backend AND q.kind = p.kind) AS "largest residual",
    (SELECT iif(count(*), printf('%,d', sum(r.n_checked)), NULL)
     FROM run_points k JOIN residuals r USING (block_id, point_key) JOIN points q USING (point_key)
     WHERE k.run_id = :run AND q.experiment = p.experiment AND q.backend = p.backend AND q.kind = p.kind) AS "outputs checked"
FROM run_points l
JOIN points p USING (point_key)
JOIN block_points b USING (block_id, point_key)
WHERE l.run_id = :run
GROUP BY p.experiment, p.backend, p.kind
ORDER BY p.experiment, p.backend, p.kind;
