SELECT group_concat(part, '; ') || '. Not priced: '
    || coalesce((SELECT group_concat(what, ', ') FROM (SELECT unpriced AS what, 0 AS place FROM figure UNION SELECT unpowered, 1 FROM figure ORDER BY place) WHERE what <> 'nothing'), 'nothing')
    || '. Prices are those of the machine files on their dates.'
FROM (SELECT traffic || printf(' at %.3g tokens/s', max(rate)) || ' through ' || path || printf(': %.4g to %.4g USD', min(all_usd), max(all_usd))
    || iif(max(usd) FILTER (WHERE series LIKE '%for the tables%') IS NULL, '', printf(', of which memory for the tables %.3g to %.3g', min(usd) FILTER (WHERE series LIKE '%for the tables%'), max(usd) FILTER (WHERE series LIKE '%for the tables%'))) || coalesce(', ' || max(unfit), '') AS part
    FROM figure GROUP BY traffic, path);
