SELECT group_concat(part, ' ') || ' Behind a front only what it leaves over is counted.'
FROM (SELECT upper(substr(panel, 1, 1)) || substr(panel, 2) || printf(' (%s, %,d rows): a front of %,d rows answers %.0f %%, the cache behind it %.0f %% of the rest, both %.1f %%', policy, cache_rows,
            front_rows, max(y) FILTER (WHERE metric = 'hit_front'), max(y) FILTER (WHERE metric = 'hit_conditional'), max(y) FILTER (WHERE metric = 'hit_rate'))
            || coalesce(printf('; without a front it answers %.1f %%', max(without)), '') || '.' AS part
      FROM figure f WHERE front_rows = (SELECT max(g.front_rows) FROM figure g WHERE g.panel = f.panel)
      GROUP BY panel ORDER BY panel);
