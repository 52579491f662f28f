-- title: Row formats: bytes and time of a row against what it does to the gate
-- empty: this run holds no points of the experiment format.
-- The fastest variant of each format. Drift and noise are means of absolute changes of the gate, with synthetic rows and hidden states.
WITH t AS (
    SELECT v.point_key, v.backend, v.kind, v.axes_json AS a, v.median, coalesce(v.ci_lo, v.median) AS lo, coalesce(v.ci_hi, v.median) AS hi,
        json_remove(v.axes_json, '$.row_format', '$.variant') AS rest
    FROM v_summary v JOIN points p USING (point_key)
    WHERE v.run_id = :run AND v.experiment = 'format' AND v.metric = 'row_ns' AND v.outcome = 'measured' AND p.is_roof = 0
), best AS (
    SELECT *, row_number() OVER (PARTITION BY a ->> '$.row_format', backend, kind ORDER BY median) AS place
    FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest ORDER BY count(*) DESC, rest LIMIT 1)
), metric AS (
    SELECT b.point_key, v.metric, v.median FROM best b JOIN v_summary v ON v.run_id = :run AND v.point_key = b.point_key WHERE b.place = 1
)
SELECT (a ->> '$.row_format') || iif(backend = 'cpu', '', ', ' || backend) || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, a ->> '$.variant' AS variant, b.median AS row_ns, lo, hi,
    max(m.median) FILTER (WHERE m.metric = 'row_bytes') AS row_bytes, max(m.median) FILTER (WHERE m.metric = 'line_bytes_per_row') AS line_bytes,
    max(m.median) FILTER (WHERE m.metric = 'row_error') AS row_error, max(m.median) FILTER (WHERE m.metric = 'row_cosine') AS row_cosine,
    max(m.median) FILTER (WHERE m.metric = 'gate_drift') AS gate_drift, max(m.median) FILTER (WHERE m.metric = 'gate_drift_max') AS gate_drift_max,
    max(m.median) FILTER (WHERE m.metric = 'gate_noise') AS gate_noise, a ->> '$.alignment' AS alignment, b.point_key
FROM best b JOIN metric m USING (point_key)
WHERE b.place = 1
GROUP BY b.point_key
ORDER BY row_bytes, series;
