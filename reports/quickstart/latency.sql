-- title: Time per token by tokens in the batch (synthetic hidden states)
-- empty: no operation of this run was measured at two numbers of tokens.
-- One line per operation and backend: its fastest variant at each number of tokens, all other axes alike. Of the points that
-- differ in tokens alone, the set with the most is taken, at the report's clock of the metric (cpu or wall; of a device's
-- kernels device time in the place of CPU time).
WITH t AS (
    SELECT v.point_key, v.experiment, v.backend, v.kind, iif(v.backend <> 'cpu' AND v.clock = 'cpu', 'device', v.clock) AS clock, v.axes_json,
        CAST(v.axes_json ->> '$.tokens' AS INTEGER) AS tokens,
        json_remove(v.axes_json, '$.tokens', '$.variant') AS rest,
        v.median * iif(v.metric = 'ns_per_token', 0.001, 1) AS us,
        v.ci_lo * iif(v.metric = 'ns_per_token', 0.001, 1) AS us_lo,
        v.ci_hi * iif(v.metric = 'ns_per_token', 0.001, 1) AS us_hi
    FROM v_summary v JOIN points p USING (point_key)
    WHERE v.run_id = :run AND v.outcome = 'measured' AND p.is_roof = 0
        AND (v.experiment, v.metric) IN (VALUES ('hash', 'ns_per_token'), ('gather', 'ns_per_token'),
            ('project', 'us_per_token'), ('gate', 'ns_per_token'), ('chain', 'us_per_token'))
), picked AS (
    SELECT experiment, rest, row_number() OVER (PARTITION BY experiment
        ORDER BY count(DISTINCT tokens) DESC, count(*) DESC, rest) AS place
    FROM t GROUP BY experiment, rest
), best AS (
    SELECT t.*, row_number() OVER (PARTITION BY t.experiment, t.backend, t.kind, t.tokens ORDER BY t.us) AS fastest
    FROM t JOIN picked USING (experiment, rest)
    WHERE picked.place = 1
), sizes AS (
    SELECT count(DISTINCT tokens) AS most FROM best GROUP BY experiment ORDER BY 1 DESC LIMIT 1
)
SELECT experiment || iif(backend = 'cpu', '', ', ' || backend) || ', ' || clock || ' time' || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series,
    experiment, backend, kind, clock, tokens, us AS us_per_token, coalesce(us_lo, us) AS us_lo, coalesce(us_hi, us) AS us_hi,
    us * tokens AS us_per_batch, axes_json ->> '$.variant' AS variant, axes_json ->> '$.corpus' AS corpus, point_key
FROM best
WHERE fastest = 1 AND (SELECT most FROM sizes) > 1
ORDER BY CASE experiment WHEN 'hash' THEN 1 WHEN 'gather' THEN 2 WHEN 'project' THEN 3 WHEN 'gate' THEN 4 ELSE 5 END,
    backend, kind, tokens;
