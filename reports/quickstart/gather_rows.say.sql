-- Of the CPU where it was measured; a device follows in its own words.
WITH f AS (SELECT * FROM figure WHERE backend = (SELECT min(backend) FROM figure))
SELECT printf('With %s tokens of %s, %s rows decoded to %s, %s thread%s and hold = %s, the gather reads ',
        hi.tokens, hi.corpus, hi.row_format, hi.out, hi.threads, iif(CAST(hi.threads AS INTEGER) = 1, '', 's'), hi.hold)
    || iif(n.points = 1, '', printf('from %.2f GB/s (K = %d, %s rows per head) to ', lo.gbps, lo.heads,
        printf('%,d', lo.rows_per_head)))
    || printf('%.2f GB/s (K = %d, %s rows per head)', hi.gbps, hi.heads, printf('%,d', hi.rows_per_head))
    || CASE WHEN n.roof_low IS NULL THEN ''
        WHEN n.points = 1 THEN printf(', which is %.0f %% of the roof measured beside it', n.roof_low)
        ELSE printf(', which is %.0f to %.0f %% of the roof measured beside each point', n.roof_low, n.roof_high) END
    || iif(n.variants = 1, printf(' (variant %s)', hi.variant), printf(' (fastest of the variants: %s)', n.variant_list))
    || printf('. Bandwidth is logical bytes over %s time', iif(hi.backend = 'cpu', 'CPU', 'device'))
    || (SELECT coalesce(group_concat(part, ''), '') FROM (SELECT printf('; variants of %s read from %.2f to %.2f GB/s of device time', backend || iif(kind = 'measured', '', ' (' || kind || ')'), min(gbps), max(gbps)) AS part
        FROM figure WHERE backend > hi.backend GROUP BY backend, kind))
    || '; bars are 95 % intervals of the median'
    || CASE WHEN hi.knee_bytes IS NOT NULL THEN printf('; the last-level cache holds %.3g MiB by the knee of the latency ladder', hi.knee_bytes / 1048576.0)
            || iif(hi.os_cache_bytes IS NULL, '', printf(' (%.4g MiB as the operating system tells it)', hi.os_cache_bytes / 1048576.0))
        WHEN hi.cache_bytes IS NOT NULL THEN printf('; the last-level cache is %.4g MiB as the operating system tells it (no latency ladder '
            || 'of this machine)', hi.cache_bytes / 1048576.0)
        ELSE '' END
    || CASE WHEN hi.cache_bytes IS NULL THEN ''
        WHEN n.points = 1 THEN printf(', and the working set is %s', iif(n.larger, 'larger', 'not larger'))
        ELSE printf(', and %d of %d points have a larger working set', n.larger, n.points) END
    || '.'
FROM (SELECT * FROM f ORDER BY gbps LIMIT 1) lo, (SELECT * FROM f ORDER BY gbps DESC LIMIT 1) hi,
    (SELECT count(*) AS points, min(percent_of_roof) AS roof_low, max(percent_of_roof) AS roof_high,
         count(DISTINCT variant) AS variants, group_concat(DISTINCT variant) AS variant_list,
         count(*) FILTER (WHERE working_set_bytes > cache_bytes) AS larger
     FROM f) n;
