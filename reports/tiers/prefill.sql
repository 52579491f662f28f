-- title: Prompts in chunks: fetching the rows of a chunk, and how much of it hides
-- empty: this run holds no points of prefetch in the phase prefill with two chunks.
-- The fetch of one module per pass; of the points that differ in chunk, window and source alone, the set with the most; of several windows
-- of a chunk the first by name.
WITH t AS (
    SELECT *, CAST(a ->> '$.tokens' AS INTEGER) AS tokens, coalesce(nullif(a ->> '$.chunk', 0), a ->> '$.tokens') AS chunk,
        json_remove(a, '$.chunk', '$.window', '$.store', '$.residency', '$.io', '$.scales') AS rest
    FROM fetches WHERE run_id = :run AND experiment = 'prefetch' AND a ->> '$.phase' = 'prefill'
), picked AS (
    SELECT *, (tokens + chunk - 1) / chunk AS passes, iif(a ->> '$.window' = 'backbone', '', ' (emulated)') AS paced
    FROM t WHERE rest = (SELECT rest FROM t GROUP BY rest HAVING count(DISTINCT chunk) > 1 ORDER BY count(*) DESC, rest LIMIT 1)
        AND a ->> '$.window' = (SELECT min(w.a ->> '$.window') FROM t w WHERE w.rest = t.rest AND w.chunk = t.chunk)
), parts AS (
    SELECT 'a chunk takes (ms)' AS panel, source || made AS series, store, m ->> '$.fetch_us[0]' / passes / 1e3 AS y, m ->> '$.fetch_us[1]' / passes / 1e3 AS lo,
        m ->> '$.fetch_us[2]' / passes / 1e3 AS hi, * FROM picked
    UNION ALL
    SELECT 'a chunk takes (ms)', 'its layers' || paced, NULL, min(m ->> '$.step_ready_us[0]') / passes / 1e3, NULL, NULL, * FROM picked GROUP BY chunk, paced
    UNION ALL
    SELECT 'hidden (%)', source || made, store, 100 * (m ->> '$.hidden[0]'), 100 * (m ->> '$.hidden[1]'), 100 * (m ->> '$.hidden[2]'), * FROM picked
)
SELECT panel, series, source, store IS NULL AS computes, chunk, y, coalesce(lo, y) AS lo, coalesce(hi, y) AS hi, tokens, paced, m ->> '$.step_us[0]' / 1e3 AS prompt_ms,
    m ->> '$.step_ready_us[0]' / 1e3 AS ready_ms, m ->> '$.cost_percent[0]' AS cost_percent, point_key
FROM parts
ORDER BY panel, computes, place, chunk;
