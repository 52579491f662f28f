-- title: Share and time of each operation in the chain
-- The fastest variant of the chain at each number of tokens, of the CPU where it ran one (a device's chain is a line of
-- the figure before). Of the points that differ in tokens and variant alone, the set with the most.
WITH c AS (
    SELECT v.point_key, v.backend, CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens, v.axes_json ->> '$.corpus' AS corpus,
        coalesce(v.axes_json ->> '$.variant', '') AS variant, json_remove(v.axes_json, '$.tokens', '$.variant') AS rest,
        max(v.median) FILTER (WHERE v.metric = 'share_hash') AS hash,
        max(v.median) FILTER (WHERE v.metric = 'share_gather') AS gather,
        max(v.median) FILTER (WHERE v.metric = 'share_project') AS project,
        max(v.median) FILTER (WHERE v.metric = 'share_gate') AS gate,
        max(v.median) FILTER (WHERE v.metric = 'wall_us') AS wall_us
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'chain' AND v.outcome = 'measured' AND v.kind = 'measured'
    GROUP BY v.point_key
), best AS (
    SELECT c.*, row_number() OVER (PARTITION BY tokens ORDER BY wall_us) AS place
    FROM c
    WHERE backend = (SELECT min(backend) FROM c)
        AND rest = (SELECT rest FROM c GROUP BY rest ORDER BY count(DISTINCT tokens) DESC, count(*) DESC, rest LIMIT 1)
        AND hash + gather + project + gate IS NOT NULL
)
SELECT tokens, 100 * hash AS hash, 100 * gather AS gather, 100 * project AS project, 100 * gate AS gate, wall_us, variant,
    corpus, point_key
FROM best
WHERE place = 1
ORDER BY tokens;
