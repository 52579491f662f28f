-- Paired within blocks: the median over pairs of the best chains' time by the other's. "Sum" is the chains' time per row
-- plus the row's output bytes at the fastest stream that writes (of this run, same threads).
-- empty: This run holds no roof beside chains.
WITH t AS (
    SELECT v.point_key, v.median, v.axes_json ->> '$.access' AS access, json_remove(v.axes_json, '$.access') AS shape,
        v.axes_json, l.block_id,
        CASE WHEN v.axes_json ->> '$.access' LIKE 'chains%' THEN 'chains' WHEN v.axes_json ->> '$.access' LIKE 'read%' THEN 'read'
            ELSE 'roof' END AS what
    FROM v_summary v JOIN run_points l ON l.run_id = v.run_id AND l.point_key = v.point_key
    WHERE v.run_id = :run AND v.experiment = 'ladder' AND v.metric = 'ns_per_load' AND v.outcome = 'measured'
        AND v.axes_json ->> '$.access' <> 'chains'
), best AS (
    SELECT *, row_number() OVER (PARTITION BY shape, what ORDER BY median) AS place FROM t
), pairs AS (
    SELECT o.shape, o.what, o.access, o.median, c.access AS chains, c.median AS chains_ns, o.axes_json,
        100 * a.value / b.value AS share,
        row_number() OVER (PARTITION BY o.shape, o.what ORDER BY a.value / b.value) AS place,
        count(*) OVER (PARTITION BY o.shape, o.what) AS n
    FROM best o
    JOIN best c ON c.shape = o.shape AND c.what = 'chains' AND c.place = 1 AND c.block_id = o.block_id
    JOIN sample_values a ON a.block_id = c.block_id AND a.point_key = c.point_key AND a.metric = 'ns_per_load'
    JOIN sample_values b ON b.block_id = o.block_id AND b.point_key = o.point_key AND b.metric = 'ns_per_load'
        AND b.segment = a.segment AND b.pair = a.pair
    JOIN samples s ON s.block_id = a.block_id AND s.point_key = a.point_key AND s.segment = a.segment AND s.pair = a.pair
    WHERE o.place = 1 AND o.what <> 'chains' AND s.traced = 0
), shares AS (
    SELECT shape, what, access, median, chains, chains_ns, axes_json, avg(share) AS share
    FROM pairs WHERE place IN ((n + 1) / 2, (n + 2) / 2) GROUP BY shape, what
), writes AS (
    SELECT v.axes_json ->> '$.threads' AS threads, max(v.median) AS gbps
    FROM v_summary v
    WHERE v.run_id = :run AND v.experiment = 'stream' AND v.metric = 'gbps' AND v.axes_json ->> '$.pass' = 'write'
    GROUP BY 1
)
SELECT printf('%.4g MiB', (r.axes_json ->> '$.bytes') / 1048576.0) AS "working set", r.axes_json ->> '$.line' AS "row, bytes",
    r.axes_json ->> '$.pages' AS pages, r.axes_json ->> '$.threads' AS threads, r.axes_json ->> '$.tokens' AS tokens,
    r.chains AS "best chains", printf('%.2f', r.chains_ns) AS "ns/line", r.access AS "best reading", printf('%.2f', r.median) AS "read, ns/line",
    printf('%.0f', r.share) AS "read, % of chains", coalesce(f.access, '-') AS "best roof",
    iif(f.median IS NULL, '-', printf('%.2f', f.median)) AS "roof, ns/line",
    iif(f.share IS NULL, '-', printf('%.0f', f.share)) AS "roof, % of chains",
    iif(w.gbps IS NULL OR f.median IS NULL, '-', printf('%.0f', 100 * (r.chains_ns * 5 + (r.axes_json ->> '$.threads') * 256 *
        CASE r.axes_json ->> '$.out' WHEN 'f32' THEN 4 WHEN 'bf16' THEN 2 ELSE 1 END / w.gbps) / (f.median * 5))) AS "roof, % of sum"
FROM shares r
LEFT JOIN shares f ON f.shape = r.shape AND f.what = 'roof'
LEFT JOIN writes w ON w.threads = r.axes_json ->> '$.threads'
WHERE r.what = 'read'
ORDER BY threads, CAST(r.axes_json ->> '$.bytes' AS INTEGER), 2, pages DESC, CAST(tokens AS INTEGER) DESC;
