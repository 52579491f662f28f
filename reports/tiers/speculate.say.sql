WITH c AS (SELECT * FROM figure WHERE panel NOT LIKE '%vain%'),
v AS (SELECT * FROM figure WHERE panel LIKE '%vain%'),
pairs AS (
    SELECT f.panel, f.source, f.sequences, f.acceptance, f.y AS known, f.lo AS known_lo, f.hi AS known_hi, n.y AS early, n.lo, n.hi
    FROM c f JOIN c n ON n.panel = f.panel AND n.source = f.source AND n.acceptance = f.acceptance AND n.ahead = 'on'
    WHERE f.ahead = 'off'
)
SELECT printf('%s drafted tokens and one more are verified in a step', max(draft))
    || coalesce((SELECT ' of ' || max(layers) || ' layers that take ' || max(pace) || ' µs each (emulated)' FROM c WHERE pace IS NOT NULL), '') || '. '
    || coalesce((SELECT group_concat(part, ' ') FROM (SELECT printf('%d sequence%s from %s: with %.0f %% accepted waiting makes the step %.1f %% longer, asked one step ahead %.1f %%, which %s; with %.0f %% accepted %.1f and %.1f %%.',
                p.sequences, iif(p.sequences = 1, '', 's'), p.source, 100 * p.acceptance, p.known, p.early,
                CASE WHEN p.hi < p.known_lo THEN 'pays' WHEN p.lo > p.known_hi THEN 'costs' ELSE 'makes no clear difference' END,
                100 * q.acceptance, q.known, q.early) AS part
            FROM pairs p JOIN pairs q ON q.panel = p.panel AND q.source = p.source
            WHERE p.acceptance = (SELECT max(acceptance) FROM pairs) AND q.acceptance = (SELECT min(acceptance) FROM pairs)
            ORDER BY p.sequences, p.source DESC)) || ' ', '')
    || coalesce((SELECT printf('Of all rows read %.0f %% are for rejected tokens with %.0f %% accepted', y, 100 * acceptance) FROM v WHERE ahead = 'off' ORDER BY acceptance DESC LIMIT 1)
        || coalesce((SELECT printf(', %.0f %% when asked one step ahead', y) FROM v WHERE ahead = 'on' ORDER BY acceptance DESC LIMIT 1), '') || '.', '')
FROM figure;
