SELECT printf('A load that depends on the last takes %.3g ns in a set of %s and %.3g ns in one of %s (%s pages)',
        lo.ns, iif(lo.bytes < 1048576, printf('%d KiB', lo.bytes / 1024), printf('%d MiB', lo.bytes / 1048576)), hi.ns,
        iif(hi.bytes < 1073741824, printf('%d MiB', hi.bytes / 1048576), printf('%.3g GiB', hi.bytes / 1073741824.0)), hi.pages)
    || coalesce((SELECT printf('; on %s pages it takes %.3g ns there, %.2f times as long', o.pages, o.ns, o.ns / hi.ns)
        FROM figure o WHERE o.bytes = hi.bytes AND o.pages <> hi.pages ORDER BY o.ns DESC LIMIT 1), '')
    || CASE WHEN hi.knee_bytes IS NULL THEN '. No knee: the sets do not reach far enough beyond the cache'
        ELSE printf('. Latency leaves the plateau of the last-level cache at %.3g MiB', hi.knee_bytes / 1048576.0) END
    || iif(hi.os_bytes IS NULL, '', printf('; the operating system says %.4g MiB', hi.os_bytes / 1048576.0))
    || coalesce(printf('. At least %.0f %% of every set above 2 MiB that asked for larger pages lies on them',
        (SELECT 100 * min(huge_share) FROM figure WHERE pages <> '4k' AND bytes > 2097152)), '') || '.'
FROM (SELECT * FROM figure ORDER BY pages = '2m' DESC, bytes LIMIT 1) lo,
    (SELECT * FROM figure ORDER BY pages = '2m' DESC, bytes DESC LIMIT 1) hi;
