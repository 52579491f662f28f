SELECT printf('An LRU cache of %.3g GB. ', max(cache_bytes) / 1e9) || (SELECT group_concat(part, '; ') FROM (SELECT replace(series, ' (simulated)', '') || printf(': %.3g %% with one stream, %.3g %% with %d side by side',
    max(hit_percent) FILTER (WHERE x = 1), min(hit_percent) FILTER (WHERE x = (SELECT max(x) FROM figure WHERE panel = 'streams')), (SELECT max(x) FROM figure WHERE panel = 'streams'))
    || coalesce(iif(max(beta) IS NULL, NULL, printf('; distinct n-grams grow as T^%.2f, so that a billion tokens would touch %.3g %% of a head''s rows (extrapolated)', max(beta), max(touched_percent))), '') AS part
    FROM figure WHERE panel = 'streams' GROUP BY series)) || '.' FROM figure;
