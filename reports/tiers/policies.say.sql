-- Where the policies differ most, and how many rows bring the best within a point of all that a cache can answer.
WITH spread AS (
    SELECT panel, cache_rows, max(hit_percent) - min(hit_percent) AS apart, row_number() OVER (PARTITION BY panel ORDER BY max(hit_percent) - min(hit_percent) DESC) AS place
    FROM figure GROUP BY panel, cache_rows
)
SELECT group_concat(part, ' ') || ' Rows asked for the first time are answered by none.'
FROM (SELECT upper(substr(s.panel, 1, 1)) || substr(s.panel, 2) || ', where they differ most, with ' || printf('%,d', s.cache_rows) || ' rows: '
            || (SELECT group_concat(printf('%s %.0f %%', series, hit_percent), ', ') FROM (SELECT * FROM figure f WHERE f.panel = s.panel AND f.cache_rows = s.cache_rows ORDER BY hit_percent DESC))
            || coalesce((SELECT printf('; all that have been asked for before, %.0f %%, from %,d rows on', max(most_percent), min(cache_rows))
                FROM figure f WHERE f.panel = s.panel AND f.hit_percent > f.most_percent - 1 HAVING count(*)), '') || '.' AS part
      FROM spread s WHERE s.place = 1 ORDER BY s.panel);
