SELECT printf('%d runs', count(*)) || coalesce(printf('; correlation of load and remaining loss %+.2f',
        (avg(load_max * rest) - avg(load_max) * avg(rest)) / nullif(sqrt((avg(load_max * load_max) - avg(load_max) * avg(load_max))
        * (avg(rest * rest) - avg(rest) * avg(rest))), 0)), '')
    || printf('; busiest expert %.2f to %.2f times the mean; %d collapsed.', min(load_max), max(load_max), sum(collapsed > 0))
FROM figure;
