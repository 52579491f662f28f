-- title: Time of a load: predicted against measured
SELECT iif(axes_json ->> '$.access' = 'chains', 'one chain, ' || (axes_json ->> '$.pages') || ' pages', 'more chains, ' || ((axes_json ->> '$.bytes') / 1048576) || ' MiB') || iif(extrapolated, ', extrapolated', '') || ' (simulated)' AS series, measured,
    coalesce(ci_lo, measured) AS measured_lo,
    coalesce(ci_hi, measured) AS measured_hi, simulated AS predicted, extrapolated, model, provenance, point_key
FROM v_predictions
WHERE run_id = :run AND model = 'latency ladder'
ORDER BY series, measured;
