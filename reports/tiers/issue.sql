-- title: How reads are issued: rows a second over reads under way
-- empty: this run holds no points of tier with two numbers of reads under way.
-- Under way: the depth of the ring, or threads that read. Of the points that differ in store, depth, threads, residency and way past
-- the page cache alone, the set with the most.
WITH t AS (
    SELECT *, CAST(a ->> iif(store = 'uring', '$.depth', '$.readers') AS INTEGER) AS under_way,
        json_remove(a, '$.store', '$.depth', '$.readers', '$.residency', '$.io') AS rest
    FROM fetches WHERE run_id = :run AND experiment = 'tier' AND store <> 'memory'
), sets AS (
    SELECT rest, count(*) AS n FROM t GROUP BY rest, store, residency, io HAVING count(DISTINCT under_way) > 1
), picked AS (
    SELECT * FROM t WHERE rest = (SELECT rest FROM sets GROUP BY rest ORDER BY sum(n) DESC, rest LIMIT 1)
)
SELECT iif(io = 'direct', 'past the page cache', residency) AS panel, store || made AS series, store, under_way, m ->> '$.rows_per_s[0]' AS rows_per_s,
    m ->> '$.rows_per_s[1]' AS lo, m ->> '$.rows_per_s[2]' AS hi, a ->> '$.tokens' AS tokens, a ->> '$.row_format' AS row_format, a ->> '$.scales' AS scales, point_key
FROM picked
ORDER BY place, store = 'uring' DESC, store, under_way;
