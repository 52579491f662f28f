-- title: Gates and scores by frequency of the n-gram
-- empty: only runs trained here have histograms; the file of runs keeps their shares alone.
-- Of the arms that differ in the gate's formula alone, those with most formulas, then streams, then runs.
-- All streams and seeds together; 80 bins: of the gate, and of copysign(log10(1 + 100 |score|), score).
WITH shapes AS (
    SELECT c.formula, c.point_key, h.layer, h.stream, h.lo, h.hi, h.scale, h.counts_json, h.name FROM chosen c
    JOIN histograms h ON h.block_id = c.block_id AND h.point_key = c.point_key
    WHERE h.name IN ('gate:0', 'gate_score:0', 'gate_decile:0', 'gate_decile:9', 'gate_decile_score:0', 'gate_decile_score:9')
), bins AS (
    SELECT formula, layer, iif(name LIKE '%score%', 'score', 'gate') AS part,
        CASE WHEN name LIKE 'gate_decile%0' THEN 'rarest tenth' WHEN name LIKE 'gate_decile%9' THEN 'most frequent tenth' ELSE 'before training' END AS series,
        b.key AS bin, sum(b.value) AS n, max(json_array_length(counts_json)) AS bins, min(point_key) AS point_key, max(hi) AS hi
    FROM shapes JOIN json_each(counts_json) b GROUP BY 1, 2, 3, 4, 5
)
SELECT formula || printf(', layer %d', layer) AS panel, series, part, formula, layer, bin,
    iif(part = 'gate', (bin + 0.5) / bins, (2 * (bin + 0.5) / bins - 1) * log10(1 + 100 * hi)) AS place, 100.0 * n / sum(n) OVER (PARTITION BY formula, layer, part, series) AS percent, n, point_key
FROM bins ORDER BY formula DESC, layer, part, series = 'before training' DESC, series DESC, bin;
