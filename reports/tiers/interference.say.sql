SELECT 'On the front: ' || group_concat(part, '; ') || '. There nothing else of the same product gets more rows and costs it less.'
FROM (SELECT printf('beside a %s, %d gathering thread%s get %.2f GB/s and cost it %.1f %%', series, gatherers, iif(gatherers = 1, '', 's'), gbps, slowdown_percent) AS part
      FROM figure WHERE on_front AND gbps > 0 ORDER BY rowid);
