SELECT 'For 90 % of its rate a tier needs under way: ' || group_concat(part, '; ') || '.'
FROM (SELECT replace(series, ' (simulated)', '') || printf(' %.0f requests%s', max(enough), iif(max(hard), ' (no knee is known: a lower bound)', '')) AS part FROM figure GROUP BY series);
