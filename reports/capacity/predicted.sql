-- title: F17. Is the model right? Predicted against measured
-- empty: this database holds no validation: engram calibrate --validate with the same --db.
-- Each value that a calibrated model predicts beside the one measured at the same point, whatever run they belong to.
WITH s AS (
    SELECT p.point_key, p.config_key, p.machine_id, p.experiment, p.provenance, v.metric, v.value FROM points p JOIN sample_values v USING (point_key)
    WHERE p.kind = 'simulated' AND p.experiment <> 'size'
), m AS (
    SELECT p.config_key, p.machine_id, v.metric, v.value, row_number() OVER (PARTITION BY p.config_key, p.machine_id, v.metric ORDER BY v.value) AS place,
        count(*) OVER (PARTITION BY p.config_key, p.machine_id, v.metric) AS n
    FROM points p JOIN sample_values v USING (point_key) WHERE p.kind = 'measured' AND p.config_key IN (SELECT config_key FROM s)
), middle AS (SELECT config_key, machine_id, metric, avg(value) AS value FROM m WHERE place IN ((n + 1) / 2, (n + 2) / 2) GROUP BY 1, 2, 3)
SELECT s.point_key, s.experiment || ' ' || s.metric || ' (simulated)' AS series, s.experiment, s.metric, middle.value AS measured, s.value AS predicted,
    100 * (s.value / middle.value - 1) AS error_percent, s.provenance LIKE 'extrapolated%' AS extrapolated
FROM s JOIN middle USING (config_key, machine_id, metric) WHERE middle.value > 0 ORDER BY series, measured;
