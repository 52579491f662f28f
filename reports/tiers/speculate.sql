-- title: Verify steps: what waiting for rows costs, and how many are read for rejected tokens
-- empty: this run holds no points of the experiment speculate.
-- A step against one whose rows are there; rows of rejected drafts, and rows asked for ahead in vain, of all rows read.
WITH t AS (
    SELECT v.point_key, v.kind, v.axes_json AS a, v.metric, v.median AS y, coalesce(v.ci_lo, v.median) AS lo, coalesce(v.ci_hi, v.median) AS hi,
        json_remove(v.axes_json, '$.ahead', '$.store', '$.residency', '$.io', '$.scales', '$.sequences', '$.acceptance') AS rest
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'speculate' AND v.metric IN ('cost_percent', 'vain_share') AND v.outcome = 'measured'
), named AS (
    SELECT t.*, (a ->> '$.sequences') || iif(a ->> '$.sequences' = 1, ' sequence', ' sequences') AS batch,
        (a ->> '$.store') || CASE WHEN a ->> '$.store' = 'memory' THEN '' WHEN a ->> '$.io' = 'direct' THEN ' direct'
            ELSE ' ' || (a ->> '$.residency') END AS source,
        iif(a ->> '$.ahead' = 'on', 'asked one step ahead', 'asked when known') AS mode,
        CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS made
    FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest ORDER BY count(*) DESC, rest LIMIT 1)
)
SELECT * FROM (
SELECT batch || ': step longer by (%)' AS panel, source || ', ' || mode || made AS series, CAST(a ->> '$.sequences' AS INTEGER) AS sequences, source, a ->> '$.ahead' AS ahead,
    CAST(a ->> '$.acceptance' AS REAL) AS acceptance, y, lo, hi, a ->> '$.draft' AS draft, iif(a ->> '$.window' = 'backbone', NULL, substr(a ->> '$.window', 7)) AS pace,
    a ->> '$.layers' AS layers, point_key
FROM named WHERE metric = 'cost_percent'
UNION ALL
SELECT batch || ': rows read in vain (%)', source || ', ' || mode || made, CAST(a ->> '$.sequences' AS INTEGER), source, a ->> '$.ahead',
    CAST(a ->> '$.acceptance' AS REAL), 100 * y, 100 * lo, 100 * hi, a ->> '$.draft', NULL, NULL, point_key
FROM named WHERE metric = 'vain_share' AND source = (SELECT min(source) FROM named)
    AND CAST(a ->> '$.sequences' AS INTEGER) = (SELECT min(CAST(a ->> '$.sequences' AS INTEGER)) FROM named)
) ORDER BY panel LIKE '%vain%', sequences, source DESC, ahead, acceptance;
