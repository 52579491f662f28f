SELECT (SELECT max(traffic) FROM figure) || ': one host at 100,000 tokens/s asks for ' || group_concat(part, '; ') || '.'
FROM (SELECT tier || ' of ' || path || printf(' %.3g GB/s, %.3g M requests/s, %.2g devices', gbps, m_per_s, units) AS part FROM figure WHERE host_rate > 0.99e5 AND host_rate < 1.01e5 ORDER BY units DESC);
