-- title: Gate values by layer and stream
-- Counts of all samples, as shares of the gates of a layer and stream; of the traced point with the most gates (and
-- those that differ from it in the layer alone), or of the point with the most where none was traced.
WITH h AS (
    SELECT p.point_key, p.variant || json_remove(p.axes_json, '$.layer') AS config, g.layer, g.stream, g.lo, g.hi, g.counts_json,
        EXISTS (SELECT 1 FROM artifacts a WHERE a.point_key = p.point_key AND a.kind = 'trace') AS traced
    FROM run_points l JOIN points p USING (point_key) JOIN histograms g USING (block_id, point_key)
    WHERE l.run_id = :run AND p.is_roof = 0 AND g.name = 'gate' AND g.scale = 'linear'
), chosen AS (
    SELECT config FROM h GROUP BY config ORDER BY max(traced) DESC, count(*) DESC, config LIMIT 1
), bins AS (
    SELECT min(h.point_key) AS point_key, h.layer, h.stream, c.key AS bin, sum(c.value) AS n,
        h.lo + (c.key + 0.5) * (h.hi - h.lo) / json_array_length(h.counts_json) AS gate
    FROM h JOIN chosen USING (config) JOIN json_each(h.counts_json) c
    GROUP BY h.layer, h.stream, c.key
)
SELECT printf('layer %d', layer) AS panel, printf('stream %d', stream) AS series, layer, stream, gate,
    100.0 * n / nullif(sum(n) OVER (PARTITION BY layer, stream), 0) AS percent, n, point_key
FROM bins
ORDER BY layer, stream, gate;
