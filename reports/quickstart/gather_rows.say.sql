SELECT printf('With %s tokens of %s, %s rows decoded to %s, %s thread%s and hold = %s, the gather reads from %.2f GB/s '
        || '(K = %d, %s rows per head) to %.2f GB/s (K = %d, %s rows per head)',
        hi.tokens, hi.corpus, hi.row_format, hi.out, hi.threads, iif(CAST(hi.threads AS INTEGER) = 1, '', 's'), hi.hold,
        lo.gbps, lo.heads, printf('%,d', lo.rows_per_head), hi.gbps, hi.heads, printf('%,d', hi.rows_per_head))
    || coalesce(printf(', which is %.0f to %.0f %% of the roof measured beside it',
        (SELECT min(percent_of_roof) FROM figure), (SELECT max(percent_of_roof) FROM figure)), '')
    || iif((SELECT count(DISTINCT variant) FROM figure) = 1, printf(' (variant %s)', hi.variant),
        printf(' (fastest of the variants: %s)', (SELECT group_concat(DISTINCT variant) FROM figure)))
    || '. Bandwidth is logical bytes over CPU time; bars are 95 % intervals of the median'
    || coalesce(printf('; the last-level cache is %.4g MiB as the operating system tells it, and %d of %d points have '
        || 'a larger working set', hi.cache_bytes / 1048576.0,
        (SELECT count(*) FROM figure WHERE working_set_bytes > cache_bytes), (SELECT count(*) FROM figure)), '') || '.'
FROM (SELECT * FROM figure ORDER BY gbps LIMIT 1) lo, (SELECT * FROM figure ORDER BY gbps DESC LIMIT 1) hi;
