-- title: Hidden share of the fetch over placement layer
-- empty: this run holds no points of the experiment prefetch.
-- From intervals: 1 - stall / fetch. Of the points that differ in placement, store, residency, tokens and window, the set with the most.
WITH t AS (
    SELECT v.point_key, v.backend, v.kind, v.axes_json AS a, CAST(v.axes_json ->> '$.placement' AS INTEGER) AS layer, v.median AS hidden,
        coalesce(v.ci_lo, v.median) AS lo, coalesce(v.ci_hi, v.median) AS hi,
        json_remove(v.axes_json, '$.placement', '$.store', '$.residency', '$.tokens', '$.window', '$.layers') AS rest
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'prefetch' AND v.metric = 'hidden' AND v.outcome = 'measured'
)
SELECT iif(a ->> '$.window' = 'backbone', 'computed', substr(a ->> '$.window', 7) || ' µs a layer (emulated)') AS panel,
    (a ->> '$.store') || iif(a ->> '$.store' = 'memory', '', ' ' || (a ->> '$.residency')) || ', ' || (a ->> '$.tokens') || ' tokens'
        || iif(backend = 'cpu', '', ', ' || backend) || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series,
    backend, a ->> '$.store' AS store, a ->> '$.residency' AS residency, CAST(a ->> '$.tokens' AS INTEGER) AS tokens, layer, hidden, lo, hi, point_key
FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest ORDER BY count(*) DESC, rest LIMIT 1)
ORDER BY a ->> '$.window' = 'backbone', panel, store, residency DESC, tokens, layer;
