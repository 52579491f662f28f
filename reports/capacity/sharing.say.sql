SELECT printf('Received by each of %d ranks per layer: ', (SELECT max(ranks) FROM figure WHERE ranks <= 8))
    || (SELECT group_concat(replace(series, ' (simulated)', '') || printf(' %.4g MB', mb) || CASE WHEN us > 0 THEN printf(' in %.4g µs', us) ELSE '' END, ', ') FROM figure WHERE ranks = (SELECT max(ranks) FROM figure WHERE ranks <= 8))
    || printf('. Ranks that divide the columns read equally; of %d the fullest reads %.2f times the mean, and the step waits for it.', (SELECT max(ranks) FROM figure), (SELECT largest_over_mean FROM figure ORDER BY ranks DESC LIMIT 1))
    || CASE WHEN (SELECT count(us) FROM figure) THEN ' Times are latency and bandwidth of the link: no collective was measured.' ELSE ' Volumes only: --exchange=SCHEME,LINK adds times.' END;
