-- title: Gate values with synthetic hidden states
-- Counts of all samples, layers and streams of a point, as shares of the gates counted. Of the points that differ in
-- formula and alignment alone, the set with the most; the variant is the first that was measured.
WITH h AS (
    SELECT p.point_key, p.kind, p.axes_json ->> '$.formula' AS formula, CAST(p.axes_json ->> '$.alignment' AS REAL) AS alignment,
        json_remove(p.axes_json, '$.formula', '$.alignment', '$.variant') AS rest, p.variant, g.lo, g.hi, g.counts_json
    FROM run_points l
    JOIN points p USING (point_key)
    JOIN histograms g USING (block_id, point_key)
    WHERE l.run_id = :run AND p.experiment = 'gate' AND p.is_roof = 0 AND g.name = 'gate' AND g.scale = 'linear'
), picked AS (
    SELECT formula, alignment, kind, min(variant) AS variant
    FROM h
    WHERE rest = (SELECT rest FROM h GROUP BY rest ORDER BY count(DISTINCT formula || alignment) DESC, rest LIMIT 1)
    GROUP BY formula, alignment, kind
), bins AS (
    SELECT h.point_key, h.kind, h.formula, h.alignment, h.lo + (c.key + 0.5) * (h.hi - h.lo) / json_array_length(h.counts_json) AS gate,
        (h.hi - h.lo) / json_array_length(h.counts_json) AS width, sum(c.value) AS n
    FROM h JOIN picked USING (formula, alignment, kind, variant) JOIN json_each(h.counts_json) c
    WHERE h.rest = (SELECT rest FROM h GROUP BY rest ORDER BY count(DISTINCT formula || alignment) DESC, rest LIMIT 1)
    GROUP BY h.point_key, c.key
), shares AS (
    SELECT bins.*, 100.0 * n / nullif(sum(n) OVER (PARTITION BY point_key), 0) AS percent FROM bins
)
SELECT printf('a = %g', alignment) || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series,
    formula, alignment, gate, percent, width,
    (SELECT 100 * v.median FROM v_summary v
     WHERE v.run_id = :run AND v.point_key = shares.point_key AND v.metric = 'sat_05') AS sat_05_percent,
    (SELECT 100 * v.median FROM v_summary v
     WHERE v.run_id = :run AND v.point_key = shares.point_key AND v.metric = 'sat_10') AS sat_10_percent,
    point_key
FROM shares
WHERE percent IS NOT NULL
ORDER BY CASE formula WHEN 'copysign' THEN 1 WHEN 'sign' THEN 2 ELSE 3 END, alignment, gate;
