WITH parts AS (
    SELECT tokens, 'hash' AS part, hash AS share FROM figure UNION ALL SELECT tokens, 'gather', gather FROM figure
    UNION ALL SELECT tokens, 'project', project FROM figure UNION ALL SELECT tokens, 'gate', gate FROM figure
), largest AS (
    SELECT tokens, part, max(share) AS share FROM parts GROUP BY tokens
)
SELECT printf('At %d token%s %s takes %.3g %% of the chain''s wall time', a.tokens, iif(a.tokens = 1, '', 's'), a.part, a.share)
    || iif(b.tokens > a.tokens, printf(', at %d tokens %s takes %.3g %%', b.tokens, b.part, b.share), '')
    || printf(' (%.2f ms', (SELECT wall_us / 1000 FROM figure ORDER BY tokens LIMIT 1))
    || iif(b.tokens > a.tokens, printf(' and %.2f ms', (SELECT wall_us / 1000 FROM figure ORDER BY tokens DESC LIMIT 1)), '')
    || printf(' for the whole chain, variant %s); hashing and gathering together take ',
        (SELECT group_concat(DISTINCT iif(variant = '', 'none', variant)) FROM figure))
    || (SELECT iif(count(*) = 1, '', printf('%.3g to ', min(hash + gather))) || printf('%.3g %%.', max(hash + gather)) FROM figure)
FROM (SELECT * FROM largest ORDER BY tokens LIMIT 1) a, (SELECT * FROM largest ORDER BY tokens DESC LIMIT 1) b;
