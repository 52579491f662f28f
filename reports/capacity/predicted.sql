-- title: F17. Is the model right? Predicted against measured
-- empty: this database holds no validation: engram calibrate --validate with the same --db.
-- Each value that a calibrated model predicts beside the median measured at the same point by the newest run that was predicted
-- (v_predictions is of one run, this plan is another), by all models, each as it was last asked.
WITH newest AS (
    SELECT r.environment_json ->> '$.of_run' AS of_run FROM runs r WHERE r.environment_json ->> '$.of_run' IS NOT NULL ORDER BY r.ended_utc DESC LIMIT 1
), p AS (
    SELECT of_run, r.run_id AS model_run, r.ended_utc FROM newest JOIN runs r ON r.environment_json ->> '$.of_run' = of_run
), told AS (
    SELECT p.of_run, p.ended_utc, q.config_key, v.metric, v.value, q.provenance, replace(q.provenance, 'extrapolated: ', '') AS about
    FROM p JOIN run_points l ON l.run_id = p.model_run JOIN points q USING (point_key) JOIN sample_values v ON v.block_id = l.block_id AND v.point_key = l.point_key
), s AS (
    SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY config_key, metric, substr(about, 1, instr(about || ',', ',')) ORDER BY ended_utc DESC, provenance) AS age FROM told) WHERE age = 1
), m AS (
    SELECT q.point_key, q.config_key, v.metric, v.value, row_number() OVER (PARTITION BY q.point_key, v.metric ORDER BY v.value) AS place, count(*) OVER (PARTITION BY q.point_key, v.metric) AS n
    FROM newest JOIN run_points l ON l.run_id = newest.of_run JOIN points q USING (point_key) JOIN sample_values v ON v.block_id = l.block_id AND v.point_key = l.point_key
    JOIN samples c ON c.block_id = v.block_id AND c.point_key = v.point_key AND c.segment = v.segment AND c.pair = v.pair AND c.traced = 0
    WHERE (q.config_key, v.metric) IN (SELECT config_key, metric FROM s)
), middle AS (SELECT min(point_key) AS point_key, config_key, metric, avg(value) AS value FROM m WHERE place IN ((n + 1) / 2, (n + 2) / 2) GROUP BY config_key, metric)
SELECT middle.point_key, trim(substr(about, 1, instr(about || ',', ',') - 1)) || ' (simulated)' AS series, trim(substr(about, 1, instr(about || ',', ',') - 1)) AS model, s.metric,
    middle.value AS measured, s.value AS predicted, 100 * (s.value / middle.value - 1) AS error_percent, s.provenance LIKE 'extrapolated%' AS extrapolated, substr(s.of_run, 1, 8) AS of_run
FROM s JOIN middle USING (config_key, metric) WHERE middle.value > 0 AND s.value > 0 ORDER BY series, measured;
