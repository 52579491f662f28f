-- title: Time of 384 reads of a drive: predicted against measured
SELECT 'io_uring, 4 KiB, past the page cache' || iif(extrapolated, ', extrapolated', '') || ' (simulated)' AS series, measured,
    coalesce(ci_lo, measured) AS measured_lo,
    coalesce(ci_hi, measured) AS measured_hi, simulated AS predicted, extrapolated, model, provenance, point_key
FROM v_predictions
WHERE run_id = :run AND model = 'reads by depth'
ORDER BY series, measured;
