-- title: A smaller cache in front: what each answers
-- empty: this run holds no points of the experiment cache with a front.
-- Of the points that differ in corpus and front alone, the set with the most.
WITH t AS (
    SELECT v.point_key, v.kind, v.axes_json AS a, v.metric, 100 * v.median AS y, CAST(v.axes_json ->> '$.front_rows' AS INTEGER) AS front_rows,
        json_remove(v.axes_json, '$.corpus', '$.front_rows') AS rest
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'cache' AND v.outcome = 'measured' AND v.metric IN ('hit_rate', 'hit_front', 'hit_conditional')
), picked AS (
    SELECT * FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest HAVING max(front_rows) > 0 ORDER BY count(*) DESC, rest LIMIT 1)
)
SELECT a ->> '$.corpus' AS panel, CASE metric WHEN 'hit_rate' THEN 'both' WHEN 'hit_front' THEN 'the front' ELSE 'behind it, of the rest' END
        || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, metric, front_rows, y, a ->> '$.policy' AS policy,
    CAST(a ->> '$.cache_rows' AS INTEGER) AS cache_rows,
    (SELECT max(p.y) FROM picked p WHERE p.metric = 'hit_rate' AND p.front_rows = 0 AND p.a ->> '$.corpus' = picked.a ->> '$.corpus') AS without, point_key
FROM picked WHERE front_rows > 0 AND y IS NOT NULL
ORDER BY panel, metric = 'hit_rate' DESC, metric = 'hit_front' DESC, front_rows;
