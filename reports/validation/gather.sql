-- title: Time of a gather: predicted against measured
SELECT (axes_json ->> '$.corpus') || ', ' || (axes_json ->> '$.row_format') || ', ' || (axes_json ->> '$.pages') || ', threads ' || (axes_json ->> '$.threads') || iif(extrapolated, ', extrapolated', '') || ' (simulated)' AS series, measured,
    coalesce(ci_lo, measured) AS measured_lo,
    coalesce(ci_hi, measured) AS measured_hi, simulated AS predicted, extrapolated, model, provenance, point_key
FROM v_predictions
WHERE run_id = :run AND model = 'row gather'
ORDER BY series, measured;
