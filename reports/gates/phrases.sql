-- title: Gates along phrases that are frequent in the training text
-- empty: no trained run of this database has gates that were looked at.
-- The run with the lowest seed of the arm with the signed root. Phrases (shaded) are runs of three tokens with the largest count times PMI that the held-out
-- text has too, each from another source where there is one; a dot stands for a space.
WITH run AS (
    SELECT * FROM chosen ORDER BY gate = 'copysign' DESC, CAST(seed AS INTEGER) LIMIT 1
), parts AS (
    SELECT c.formula, c.point_key, c.seed, CAST(substr(s.name, 8, 1) AS INTEGER) AS phrase, substr(s.name, 10) AS rest, s.step, s.value
    FROM run c JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key AND s.name GLOB 'phrase:[0-9]:*'
), tokens AS (
    SELECT phrase, step, replace(substr(rest, 7), ' ', '·') AS token, value AS inside FROM parts WHERE rest GLOB 'token:*'
), facts AS (
    SELECT phrase, max(value) FILTER (WHERE rest = 'count') AS count, max(value) FILTER (WHERE rest = 'pmi') AS pmi FROM parts GROUP BY phrase
), texts AS (
    SELECT phrase, group_concat(token, '') AS text FROM (SELECT * FROM tokens WHERE inside ORDER BY phrase, step) GROUP BY phrase
)
SELECT printf('%s: %d times, PMI %.1f bit', text, count, pmi) AS panel, p.formula AS formula, 'layer ' || replace(substr(rest, 6), ':', ', stream ') AS series,
    CAST(substr(rest, 6) AS INTEGER) AS layer, p.step AS place, replace(t.token, char(39), '’') AS token, t.inside AS inside, p.value AS gate, CAST(p.seed AS INTEGER) AS seed, p.point_key
FROM parts p JOIN tokens t USING (phrase, step) JOIN facts USING (phrase) JOIN texts USING (phrase)
WHERE rest GLOB 'gate:*' ORDER BY phrase, rest, p.step;
