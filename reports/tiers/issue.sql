-- title: How reads are issued: rows a second over reads under way
-- empty: this run holds no points of tier with two numbers of reads under way.
-- Under way: the depth of the ring, or threads that read. A panel per residency (and batch, where there are several); of the points that
-- differ in store, depth, threads, residency, batch and way past the page cache alone, the set with the most.
WITH t AS (
    SELECT *, CAST(a ->> iif(store = 'uring', '$.depth', '$.readers') AS INTEGER) AS under_way, CAST(a ->> '$.tokens' AS INTEGER) AS tokens,
        json_remove(a, '$.store', '$.depth', '$.readers', '$.residency', '$.io', '$.tokens') AS rest
    FROM fetches WHERE run_id = :run AND experiment = 'tier' AND store <> 'memory'
), lines AS (
    SELECT rest, store, residency, io, tokens, count(*) AS n FROM t GROUP BY rest, store, residency, io, tokens HAVING count(DISTINCT under_way) > 1
), picked AS (
    SELECT t.* FROM t JOIN lines USING (rest, store, residency, io, tokens)
    WHERE rest = (SELECT rest FROM lines GROUP BY rest ORDER BY sum(n) DESC, rest LIMIT 1)
)
SELECT iif(io = 'direct', 'past the page cache' || iif(residency = 'cold', '', ', ' || residency), residency) || iif((SELECT count(DISTINCT tokens) FROM picked) = 1, '', printf(', %d token%s', tokens, iif(tokens = 1, '', 's'))) AS panel,
    store || made AS series, under_way, m ->> '$.rows_per_s[0]' AS rows_per_s, m ->> '$.rows_per_s[1]' AS lo, m ->> '$.rows_per_s[2]' AS hi, tokens,
    a ->> '$.row_format' AS row_format, a ->> '$.scales' AS scales, point_key
FROM picked
ORDER BY place, tokens, store = 'uring' DESC, store, under_way;
