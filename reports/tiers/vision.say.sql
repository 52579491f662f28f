SELECT group_concat(part, ' ') || ' Windows are means of the passes' || (SELECT max(paced) FROM figure) || '.'
FROM (SELECT printf('%s%s: at %d tokens the window before the module is %.3g ms, behind the encoder %.3g ms, of %.3g ms wanted, and %.0f and %.0f %% of the fetch hide.',
            upper(substr(off.panel, 1, 1)), substr(off.panel, 2), off.tokens, off.window_ms, n.window_ms, n.wanted_ms, 100 * off.hidden, 100 * n.hidden) AS part
      FROM figure off JOIN figure n ON n.panel = off.panel AND n.tokens = off.tokens AND n.vision = 'on'
      WHERE off.vision = 'off' AND off.tokens IN ((SELECT min(tokens) FROM figure), (SELECT max(tokens) FROM figure))
      ORDER BY off.rowid);
