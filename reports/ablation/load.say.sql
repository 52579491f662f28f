SELECT printf('%d runs; correlation of load and remaining loss %+.2f; busiest expert %.2f to %.2f times the mean; %d collapsed.', count(*),
    (avg(load_max * rest) - avg(load_max) * avg(rest)) / nullif(sqrt((avg(load_max * load_max) - avg(load_max) * avg(load_max))
        * (avg(rest * rest) - avg(rest) * avg(rest))), 0), min(load_max), max(load_max), sum(collapsed))
FROM figure;
