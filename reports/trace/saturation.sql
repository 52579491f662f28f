-- title: Saturated gates by layer and stream
-- Shares at or below 0.05 or at or above 0.95, and 0.1 or 0.9, from the histograms of all samples of the points whose
-- gates are drawn; a bin counts where it lies wholly beyond the limit.
WITH h AS (
    SELECT p.point_key, p.variant || json_remove(p.axes_json, '$.layer') AS config, g.layer, g.stream, g.lo, g.hi, g.counts_json,
        EXISTS (SELECT 1 FROM artifacts a WHERE a.point_key = p.point_key AND a.kind = 'trace') AS traced
    FROM run_points l JOIN points p USING (point_key) JOIN histograms g USING (block_id, point_key)
    WHERE l.run_id = :run AND p.is_roof = 0 AND g.name = 'gate' AND g.scale = 'linear'
), chosen AS (
    SELECT config FROM h GROUP BY config ORDER BY max(traced) DESC, count(*) DESC, config LIMIT 1
), bins AS (
    SELECT h.point_key, h.layer, h.stream, c.value AS n,
        h.lo + c.key * (h.hi - h.lo) / json_array_length(h.counts_json) AS a,
        h.lo + (c.key + 1) * (h.hi - h.lo) / json_array_length(h.counts_json) AS b
    FROM h JOIN chosen USING (config) JOIN json_each(h.counts_json) c
)
SELECT printf('layer %d', layer) AS series, printf('stream %d', stream) AS name, layer, stream,
    100.0 * sum(n) FILTER (WHERE b <= 0.05 + 1e-9 OR a >= 0.95 - 1e-9) / sum(n) AS at_05,
    100.0 * sum(n) FILTER (WHERE b <= 0.1 + 1e-9 OR a >= 0.9 - 1e-9) / sum(n) AS at_10, point_key
FROM bins
GROUP BY layer, stream
ORDER BY layer, stream;
