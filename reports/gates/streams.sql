-- title: How alike are the streams, and their gates?
-- empty: no trained run of this database has several streams whose gates were looked at.
-- Of the arms that differ in the gate's formula alone, those with most formulas, then streams, then runs.
-- Pairs of streams: cosine of residual streams of a token at entry of a layer (the last: output), before Engram writes; over tokens, the cosine and the
-- correlation of gates. A point per pair, its mean over seeds.
WITH parts AS (
    SELECT c.formula, c.seed, c.point_key, substr(s.name, 1, instr(s.name, ':') - 1) AS part, substr(s.name, instr(s.name, ':') + 1) AS pair, s.step AS layer, s.value
    FROM chosen c JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key
    AND (s.name GLOB 'stream_cosine:*' OR s.name GLOB 'gate_cosine:*' OR s.name GLOB 'gate_correlation:*')
)
SELECT formula AS series, part, pair, layer, avg(value) AS value, count(*) AS n, min(point_key) AS point_key FROM parts GROUP BY 1, 2, 3, 4
ORDER BY formula DESC, part, layer, pair;
