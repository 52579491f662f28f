SELECT 'Numbers beside points are tokens (fewest and most); the fastest variant of each. '
    || coalesce((SELECT group_concat(printf('%s at %d tokens: %.3g flop/byte, %.3g GFLOP/s, %.3g GB/s (%s)', series, tokens, intensity,
            gflops, gbps, variant), '; ')
        FROM (SELECT *, row_number() OVER (PARTITION BY series ORDER BY tokens DESC) AS place FROM figure) WHERE place = 1), '')
    || (SELECT iif(max(stream_gbps) IS NULL, '', printf('. The slope is the CPU''s read stream of %.3g GB/s', max(stream_gbps))) FROM figure)
    || (SELECT iif(max(peak_gflops) IS NULL, '', printf(', the ceiling its fastest product, %.4g GFLOP/s', max(peak_gflops))) FROM figure)
    || '. One thread' || iif((SELECT max(backend) FROM figure) = 'cpu', '', '; a device''s kernels by device time, and its limits are not drawn') || '. Hashing counts no floating-point arithmetic and is left out; random rows do not stream, so a gather lies '
    || 'below the slope at its own roof.';
