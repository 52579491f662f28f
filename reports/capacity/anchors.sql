-- Published numbers whose inputs were not published, beside ours with inputs assumed.
-- empty: This run holds no anchors.
WITH t AS (SELECT point_key, kind, a ->> '$.anchor' AS anchor, a ->> '$.unit' AS unit, a ->> '$.side' AS side, max(median) FILTER (WHERE metric = 'value') AS value
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'anchor' GROUP BY point_key
)
SELECT a.anchor AS "number", a.unit, printf('%.4g', a.value) AS published, printf('%.4g', b.value) AS ours, pa.provenance AS "source", pb.provenance AS "ours rests on"
FROM t a JOIN t b ON b.anchor = a.anchor AND b.side = 'ours' JOIN points pa ON pa.point_key = a.point_key JOIN points pb ON pb.point_key = b.point_key
WHERE a.side = 'published' ORDER BY 2, 1;
