-- v_predictions: what models said of measured points (eng_db_put_simulated), one row per point, metric and model;
-- of a model that spoke twice, the newest. run_id is the measured run's. model is the text before the first comma
-- of the provenance; extrapolated: outside what the model was calibrated for.
--
-- A temporary view, so that databases made before it have it too.
CREATE TEMP VIEW IF NOT EXISTS v_predictions AS
WITH said AS (
    SELECT r.environment_json ->> '$.of_run' AS run_id, p.config_key, p.experiment, p.axes_json, v.metric,
        v.value AS simulated, p.provenance LIKE 'extrapolated: %' AS extrapolated, p.provenance,
        replace(p.provenance, 'extrapolated: ', '') AS about, r.ended_utc
    FROM runs r
    JOIN run_points l ON l.run_id = r.run_id
    JOIN points p USING (point_key)
    JOIN sample_values v ON v.block_id = l.block_id AND v.point_key = l.point_key
    WHERE p.kind = 'simulated' AND r.environment_json ->> '$.of_run' IS NOT NULL
), named AS (
    SELECT *, trim(substr(about, 1, instr(about || ',', ',') - 1)) AS model FROM said
), newest AS (
    SELECT *, row_number() OVER (PARTITION BY run_id, config_key, metric, model ORDER BY ended_utc DESC) AS place
    FROM named
)
SELECT n.run_id, n.model, n.experiment, n.config_key, m.point_key, n.axes_json, n.metric, s.unit, n.simulated, n.extrapolated,
    n.provenance, s.median AS measured, s.ci_lo, s.ci_hi, s.n
FROM newest n
JOIN run_points l ON l.run_id = n.run_id
JOIN points m ON m.point_key = l.point_key AND m.config_key = n.config_key AND m.kind = 'measured'
JOIN v_summary s ON s.run_id = n.run_id AND s.point_key = m.point_key AND s.metric = n.metric
WHERE n.place = 1;
