-- title: F14. What do a million tokens cost?
-- empty: this plan has no prices for a rate: rate= in --traffic, a machine with prices.
-- Two bars of each: every price at its lowest, and at its highest.
WITH a AS (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size'
), t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.traffic' AS traffic, a ->> '$.item' AS item, a ->> '$.unpriced' AS unpriced, coalesce(a ->> '$.unpowered', 'power') AS unpowered, max(median) FILTER (WHERE metric = 'usd_low') AS low, max(median) FILTER (WHERE metric = 'usd_high') AS high, max(median) FILTER (WHERE metric = 'value') AS rate
    FROM a WHERE a ->> '$.what' = 'cost' GROUP BY point_key
), held AS (SELECT a ->> '$.path' AS path, sum(median) FILTER (WHERE metric = 'bytes') AS bytes, max(median) FILTER (WHERE metric = 'value') AS capacity FROM a WHERE a ->> '$.what' = 'ledger' GROUP BY 1, a ->> '$.place'
), unfit AS (SELECT DISTINCT path FROM held WHERE capacity > 0 AND bytes > capacity
), b AS (
    SELECT *, 'lowest' AS end, low AS usd FROM t UNION ALL SELECT *, 'highest', high FROM t
)
SELECT point_key, traffic || ' · ' || path || ' · ' || end AS bar, dense_rank() OVER (ORDER BY traffic, path, end DESC) AS bar_no, path, traffic, end, rate, unpriced, unpowered, item || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, usd,
    coalesce(sum(usd) OVER (PARTITION BY traffic, path, end ORDER BY item ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS from_usd,
    sum(usd) OVER (PARTITION BY traffic, path, end ORDER BY item) AS to_usd, sum(usd) OVER (PARTITION BY traffic, path, end) AS all_usd,
    item = max(item) OVER (PARTITION BY traffic, path, end) AS last, path IN unfit AS unfit
FROM b ORDER BY item, bar_no;
