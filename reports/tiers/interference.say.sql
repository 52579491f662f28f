SELECT 'On the front: ' || group_concat(part, '; ') || '. There nothing else of the same product gets more rows and costs it less.'
FROM (SELECT printf('beside a %s, %d gathering thread%s %.2f GB/s and cost%s it %.1f %%', series, gatherers, iif(gatherers = 1, ' gets', 's get'), gbps, iif(gatherers = 1, 's', ''), slowdown_percent) AS part
      FROM figure WHERE on_front AND gbps > 0 ORDER BY rowid);
