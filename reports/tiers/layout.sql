-- title: How a row lies on disk: time and bytes of a row
-- empty: this run holds no points of tier with two layouts of a row on disk.
-- Of the points that differ in format, place of the scales, residency and way past the page cache alone, the set with most layouts.
WITH t AS (
    SELECT *, a ->> '$.row_format' AS format, a ->> '$.scales' AS scales, json_remove(a, '$.row_format', '$.scales', '$.residency', '$.io') AS rest
    FROM fetches WHERE run_id = :run AND experiment = 'tier' AND store <> 'memory'
), picked AS (
    SELECT * FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest HAVING count(DISTINCT format || scales) > 1
        ORDER BY count(DISTINCT format || scales) DESC, count(*) DESC, rest LIMIT 1)
), sized AS (
    SELECT *, m ->> '$.asked_bytes[0]' / (m ->> '$.batch_rows[0]') AS bytes FROM picked
)
SELECT source || made AS series, printf(CASE WHEN format = 'fp8_packed' THEN '%.0f B packed' WHEN format GLOB 'fp8_pad*' THEN '%.0f B padded'
        WHEN format <> 'fp8' THEN '%.0f B, ' || format WHEN scales = 'memory' THEN '%.0f B, scales in memory' ELSE '%.0f B, scales apart' END, bytes) AS layout,
    dense_rank() OVER (ORDER BY format NOT GLOB 'fp8*', format <> 'fp8', scales, bytes) AS layout_no, m ->> '$.row_ns[0]' / 1e3 AS row_us, m ->> '$.row_ns[1]' / 1e3 AS lo,
    m ->> '$.row_ns[2]' / 1e3 AS hi, m ->> '$.requests[0]' / (m ->> '$.batch_rows[0]') AS requests,
    m ->> '$.read_bytes[0]' / (m ->> '$.batch_rows[0]') AS read_bytes, place, a ->> '$.tokens' AS tokens, point_key
FROM sized
ORDER BY layout_no, place;
