-- title: Hits and distinct rows: models against counts
SELECT model || ' (simulated)' AS series, measured AS counted, simulated AS predicted, axes_json ->> '$.corpus' AS corpus, model,
    experiment, provenance, point_key
FROM v_predictions
WHERE run_id = :run AND experiment IN ('cache', 'reuse')
ORDER BY model, corpus, counted;
