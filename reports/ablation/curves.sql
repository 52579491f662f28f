-- title: Training loss, and the router's busiest expert, over training
-- empty: no run of this database has a loss curve.
-- Means over seeds per stretch of training, of the arms over rho; differences to the pure MoE of the same seed.
WITH runs AS (
    SELECT *, json_remove(arm, '$.rho') AS rest FROM v_train WHERE main AND memory = 0 AND loss IS NOT NULL
), most AS (
    SELECT rest FROM runs GROUP BY rest ORDER BY count(DISTINCT rho) DESC, count(*) DESC LIMIT 1
), steps AS (
    SELECT r.rho, r.seed, r.note, r.rest, r.point_key, s.step, s.value AS loss, l.value AS load_max
    FROM runs r JOIN most USING (rest)
    JOIN series s ON s.block_id = r.block_id AND s.point_key = r.point_key AND s.name = 'train_loss'
    JOIN series l ON l.block_id = r.block_id AND l.point_key = r.point_key AND l.name = 'load_max' AND l.step = s.step
)
SELECT printf('rho %.4g', r.rho) || r.note AS series, r.rho, r.step AS tokens, avg(r.loss) AS loss, avg(r.loss - b.loss) AS difference,
    avg(r.load_max) AS load_max, count(*) AS seeds, arm_label(r.rest) AS models, min(r.point_key) AS point_key
FROM steps r LEFT JOIN steps b ON b.rho = 1 AND b.seed = r.seed AND b.step = r.step
GROUP BY r.rho, r.step
ORDER BY r.rho, r.step;
