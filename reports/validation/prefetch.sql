-- title: Time of a step beside its fetch: predicted against measured
SELECT (axes_json ->> '$.store') || iif(axes_json ->> '$.window' = 'backbone', ', computed layers', ', paced layers') || iif(extrapolated, ', extrapolated', '') || ' (simulated)' AS series, measured,
    coalesce(ci_lo, measured) AS measured_lo,
    coalesce(ci_hi, measured) AS measured_hi, simulated AS predicted, extrapolated, model, provenance, point_key
FROM v_predictions
WHERE run_id = :run AND model = 'prefetch under compute'
ORDER BY series, measured;
