-- title: Interference: what a product loses for what gatherers beside it get
-- empty: this run holds no points of the experiment interference with a rate.
-- One symbol per number of gathering threads; those too slow for the phase have no rate and are left out. Those on the Pareto front lose least for what they get.
WITH t AS (
    SELECT v.point_key, v.backend, v.kind, v.axes_json AS a, v.median AS slow, coalesce(v.ci_lo, v.median) AS lo, coalesce(v.ci_hi, v.median) AS hi,
        (SELECT g.median FROM v_summary g WHERE g.run_id = :run AND g.point_key = v.point_key AND g.metric = 'gather_gbps') AS gbps,
        json_remove(v.axes_json, '$.gatherers', '$.cores', '$.source', '$.victim_tokens', '$.store') AS rest
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'interference' AND v.metric = 'slowdown_percent' AND v.outcome = 'measured'
), picked AS (
    SELECT * FROM t WHERE gbps IS NOT NULL AND rest = (SELECT rest FROM t WHERE gbps IS NOT NULL GROUP BY rest ORDER BY count(*) DESC, rest LIMIT 1)
)
SELECT 'product of ' || (a ->> '$.victim_tokens') || iif(CAST(a ->> '$.victim_tokens' AS INTEGER) = 1, ' row, ', ' rows, ') || iif(a ->> '$.source' = 'store', 'store ' || (a ->> '$.store') || ', ', '')
        || CASE a ->> '$.cores' WHEN 'apart' THEN 'own cores' WHEN 'shared' THEN 'shared core' ELSE 'any cores' END
        || iif(backend = 'cpu', '', ', ' || backend) || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series,
    CAST(a ->> '$.gatherers' AS INTEGER) AS gatherers, CAST(a ->> '$.victim_tokens' AS INTEGER) AS victim_tokens, gbps, slow AS slowdown_percent, lo, hi,
    NOT EXISTS (SELECT 1 FROM picked q WHERE q.a ->> '$.victim_tokens' = p.a ->> '$.victim_tokens'
        AND q.gbps >= p.gbps AND q.slow <= p.slow AND q.point_key <> p.point_key) AS on_front, point_key
FROM picked p
ORDER BY victim_tokens, series, gatherers;
