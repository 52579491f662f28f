-- title: F1. What fits where?
-- empty: this run holds no ledger.
-- One bar per path of a fetch and place; the fullest device, host or drive.
WITH t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.place' AS place, a ->> '$.line' AS line, a ->> '$.group' AS "group", a ->> '$.layer' AS layer, max(median) FILTER (WHERE metric = 'bytes') AS bytes, max(median) FILTER (WHERE metric = 'value') AS capacity
    FROM (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size')
    WHERE a ->> '$.what' = 'ledger' GROUP BY point_key
), g AS (
    SELECT min(point_key) AS point_key, kind, path, place, "group" AS part, sum(bytes) / 1e9 AS gb, max(capacity) / 1e9 AS capacity_gb,
        CASE "group" WHEN 'Engram tables' THEN 1 WHEN 'weights' THEN 2 WHEN 'caches of context' THEN 3 WHEN 'staging' THEN 4 ELSE 5 END AS part_no
    FROM t GROUP BY path, place, "group"
)
SELECT point_key, path || ': ' || place AS bar, dense_rank() OVER (ORDER BY path, place) AS bar_no, path, place, part || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, part_no,
    coalesce(sum(gb) OVER (PARTITION BY path, place ORDER BY part_no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS from_gb,
    sum(gb) OVER (PARTITION BY path, place ORDER BY part_no) AS to_gb, sum(gb) OVER (PARTITION BY path, place) AS all_gb, capacity_gb, part_no = max(part_no) OVER (PARTITION BY path, place) AS last
FROM g ORDER BY part_no, bar_no;
