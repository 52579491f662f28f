SELECT 'The wait for rows as a share of the step, saturated at 1. Hidden at every batch drawn (to ' || (SELECT CAST(max(tokens) AS INTEGER) FROM figure) || ' tokens): '
    || coalesce((SELECT group_concat(part, '; ') FROM (SELECT panel || ' from layer ' || min(placement) || ' on' AS part FROM
        (SELECT panel, placement, max(stall_share) AS worst FROM figure GROUP BY panel, placement) WHERE worst = 0 GROUP BY panel)), 'none')
    || '. Layer 0 has no window. Layer 14 has fourteen times the window of layer 1, so a slow tier belongs behind the deep table.';
