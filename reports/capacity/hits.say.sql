SELECT (SELECT group_concat(part, '; ') FROM (SELECT panel || printf(': %.3g %% with %.2g GB, %.3g %% with %.2g GB, at most %.3g %%', min(hit_percent), min(cache_bytes) / 1e9, max(hit_percent), max(cache_bytes) / 1e9, max(ceiling)) AS part
    FROM figure WHERE series LIKE 'lru%' GROUP BY panel)) || '. '
    || coalesce((SELECT printf('Admission at the second use changes the rate by %+.1f to %+.1f points, 16 ways instead of full associativity by %+.1f to %+.1f. ',
        min(b.hit_percent - l.hit_percent), max(b.hit_percent - l.hit_percent), (SELECT min(w.hit_percent - x.hit_percent) FROM figure w JOIN figure x USING (panel, cache_bytes) WHERE w.series LIKE 'ways%' AND x.series LIKE 'lru%'),
        (SELECT max(w.hit_percent - x.hit_percent) FROM figure w JOIN figure x USING (panel, cache_bytes) WHERE w.series LIKE 'ways%' AND x.series LIKE 'lru%'))
        FROM figure b JOIN figure l USING (panel, cache_bytes) WHERE b.series LIKE 'admission%' AND l.series LIKE 'lru%'), '')
    || 'The band is the 95 % interval between eighths of the text. What no cache can answer are first uses; on longer streams they fade.';
