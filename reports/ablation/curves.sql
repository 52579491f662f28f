-- title: Training loss, and the router's busiest expert, over training
-- empty: no run of this database has a loss curve.
-- Means over seeds per stretch of training, of the arms over rho.
WITH runs AS (
    SELECT t.*, printf('rho %.4g', t.rho) || CASE WHEN min(kind) OVER () = 'measured' AND max(kind) OVER () = 'measured' THEN '' WHEN max(kind) OVER () = min(kind) OVER () THEN ' (imported)' ELSE ' (partly imported)' END AS series FROM v_train t
    WHERE main AND json_remove(t.arm, '$.rho') = (SELECT json_remove(arm, '$.rho') FROM v_train WHERE main AND memory = 0
        GROUP BY 1 ORDER BY count(DISTINCT rho) DESC, count(*) DESC LIMIT 1)
)
SELECT r.series, r.rho, s.step AS tokens, avg(s.value) AS loss, avg(l.value) AS load_max, count(*) AS seeds, min(r.point_key) AS point_key
FROM runs r
JOIN series s ON s.block_id = r.block_id AND s.point_key = r.point_key AND s.name = 'train_loss'
JOIN series l ON l.block_id = r.block_id AND l.point_key = r.point_key AND l.name = 'load_max' AND l.step = s.step
GROUP BY r.series, s.step
ORDER BY r.rho, s.step;
