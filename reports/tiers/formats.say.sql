SELECT (SELECT group_concat(part, '; ') FROM (SELECT printf('%s rows (%d bytes) take %.1f ns, differ from bf16 originals by %.3g %% (cosine %.4f) and move the gate by %.2g in the mean, %.2g at most',
            series, row_bytes, row_ns, 100 * row_error, row_cosine, gate_drift, gate_drift_max) AS part FROM figure WHERE series IN ('int4', 'fp8') ORDER BY row_bytes))
    || printf('. Another product of the same bf16 rows moves it by %.2g: the noise floor', (SELECT max(gate_noise) FROM figure))
    || printf('. Rows and hidden states are synthetic, with a cosine of %s to the keys.', (SELECT max(alignment) FROM figure))
    || coalesce((SELECT ' Nothing changes with ' || group_concat(series, ' and ') || '.' FROM (SELECT series FROM figure WHERE gate_drift_max = 0 ORDER BY row_bytes)), '');
