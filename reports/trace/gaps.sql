-- title: Gaps of each thread: how long nothing runs
-- Between the end of one piece of work and the begin of the next on a thread, in bins of factor two. Work is what is
-- computed or read: steps and windows enclose it, and waits are gaps.
WITH work AS (
    SELECT point_key, thread, thread_name, start_ns, end_ns,
        max(end_ns) OVER (PARTITION BY point_key, thread ORDER BY start_ns, end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
    FROM trace_events WHERE kind = 'range' AND name NOT IN ('step', 'window', 'wait')
), gaps AS (
    SELECT point_key, thread_name, start_ns - reached AS gap_ns, floor(log2(start_ns - reached)) AS bin
    FROM work WHERE start_ns > reached
)
SELECT thread_name AS series, count(*) AS gaps, pow(2, bin) / 1e3 AS lo_us, pow(2, bin + 1) / 1e3 AS hi_us,
    pow(2, bin + 0.5) / 1e3 AS middle_us, sum(gap_ns) / 1e3 AS sum_us, max(gap_ns) / 1e3 AS longest_us, min(point_key) AS point_key
FROM gaps
GROUP BY thread_name, bin
ORDER BY min(thread_name LIKE 'fetch%'), thread_name, bin;
