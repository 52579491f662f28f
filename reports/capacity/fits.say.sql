SELECT group_concat(part, '; ') || '. Figures are of the fullest device, host or drive; capacities are those of the machine files.'
FROM (SELECT DISTINCT bar, printf('%s holds %.4g GB', bar, all_gb) || iif(capacity_gb > 0, printf(' of %.4g GB%s', capacity_gb, iif(all_gb > capacity_gb, ', which does not fit', '')), '') AS part
    FROM figure WHERE all_gb >= 1 ORDER BY bar_no);
