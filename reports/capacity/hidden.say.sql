SELECT (SELECT printf('The wait for rows as a share of the step that it prolongs. Every batch is given the layers of the first traffic, %.4g ms a step without waits. ', max(step_us) / 1000) FROM figure) || 'Hidden at every batch drawn (to ' || (SELECT CAST(max(tokens) AS INTEGER) FROM figure) || ' tokens): '
    || coalesce((SELECT group_concat(part, '; ') FROM (SELECT panel || ' from layer ' || min(placement) || ' on' AS part FROM
        (SELECT panel, placement, max(stall_share) AS worst FROM figure GROUP BY panel, placement) WHERE worst = 0 GROUP BY panel)), 'none')
    || '.' || coalesce((SELECT printf(' The window grows from %,d µs at layer %d to %,d µs at layer %d, so a slow tier belongs behind the deep table.',
        CAST(round(min(window_us)) AS INTEGER), min(placement), CAST(round(max(window_us)) AS INTEGER), max(placement)) FROM figure HAVING max(window_us) > min(window_us)), '');
