SELECT printf('Received by each of %d ranks per layer: ', (SELECT max(ranks) FROM figure WHERE ranks <= 8))
    || (SELECT group_concat(printf('%s %.4g MB', replace(series, ' (simulated)', ''), mb), ', ') FROM figure WHERE ranks = (SELECT max(ranks) FROM figure WHERE ranks <= 8))
    || printf('. Ranks that divide the columns read equally; of %d the fullest reads %.2f times the mean, and the step waits for it. Volumes only: no collective was timed.', (SELECT max(ranks) FROM figure), (SELECT largest_over_mean FROM figure ORDER BY ranks DESC LIMIT 1));
