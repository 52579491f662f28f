SELECT printf('Mean gate at the last token of these phrases %.2f, at the tokens before them %.2f (seed %d, %d phrases; the largest mean difference is %+.2f, %s).', last, before, seed, phrases, most, who)
FROM (SELECT avg(gate) FILTER (WHERE place = last_place) AS last, avg(gate) FILTER (WHERE NOT inside AND place < last_place) AS before, max(seed) AS seed, count(DISTINCT panel) AS phrases
    FROM figure JOIN (SELECT max(place) AS last_place FROM figure WHERE inside)),
    (SELECT series AS who, avg(gate) FILTER (WHERE place = last_place) - avg(gate) FILTER (WHERE NOT inside AND place < last_place) AS most
    FROM figure JOIN (SELECT max(place) AS last_place FROM figure WHERE inside) GROUP BY series ORDER BY 2 DESC LIMIT 1);
