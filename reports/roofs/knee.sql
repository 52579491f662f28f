-- The last-level cache: measured, and as the operating system tells it.
-- empty: No ladder of this machine reaches its memory.
SELECT c.pages AS "page size", c.points AS "working sets", printf('%.3g', c.near_ns) AS "ns below",
    printf('%.3g', c.far_ns) AS "ns far beyond",
    iif(c.knee_bytes IS NULL, 'none', printf('%.3g MiB', c.knee_bytes / 1048576.0)) AS "knee",
    iif(m.cache_bytes IS NULL, 'unknown', printf('%.4g MiB', m.cache_bytes / 1048576.0)) AS "operating system"
FROM v_cache_knee c JOIN machines m USING (machine_id) JOIN runs r USING (machine_id)
WHERE r.run_id = :run
ORDER BY c.pages;
