-- title: F14. What do a million tokens cost?
-- empty: this plan has no prices for a rate: rate= in --traffic, a machine with prices.
-- Two bars of each: every price at its lowest, and at its highest.
WITH a AS (SELECT point_key, kind, metric, median, axes_json AS a FROM v_summary WHERE run_id = :run AND experiment = 'size'
), t AS (SELECT point_key, kind, a ->> '$.path' AS path, a ->> '$.traffic' AS traffic, a ->> '$.item' AS item, a ->> '$.unpriced' AS unpriced, coalesce(a ->> '$.unpowered', 'power') AS unpowered, max(median) FILTER (WHERE metric = 'usd_low') AS low, max(median) FILTER (WHERE metric = 'usd_high') AS high, max(median) FILTER (WHERE metric = 'value') AS rate
    FROM a WHERE a ->> '$.what' = 'cost' GROUP BY point_key
), f AS (SELECT DISTINCT a ->> '$.path' AS path, a ->> '$.fit' AS fit FROM a WHERE a ->> '$.what' = 'fit'
), j AS ( -- plans of older programs have no verdict
    SELECT t.*, iif(fit IS NULL, 'fit not stored', nullif(fit, 'fits')) AS unfit FROM t LEFT JOIN f USING (path)
), b AS (
    SELECT *, 'lowest' AS end, low AS usd FROM j UNION ALL SELECT *, 'highest', high FROM j
)
SELECT point_key, traffic || ' · ' || path || ' · ' || end AS bar, dense_rank() OVER (ORDER BY traffic, path, end DESC) AS bar_no, path, traffic, end, rate, unpriced, unpowered, item || CASE kind WHEN 'measured' THEN '' ELSE ' (' || kind || ')' END AS series, usd,
    coalesce(sum(usd) OVER (PARTITION BY traffic, path, end ORDER BY item ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS from_usd,
    sum(usd) OVER (PARTITION BY traffic, path, end ORDER BY item) AS to_usd, sum(usd) OVER (PARTITION BY traffic, path, end) AS all_usd,
    item = max(item) OVER (PARTITION BY traffic, path, end) AS last, unfit,
    printf('%.3f', sum(usd) OVER (PARTITION BY traffic, path, end)) || coalesce(', ' || unfit, '') AS label
FROM b ORDER BY item, bar_no;
