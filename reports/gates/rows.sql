-- title: Whose rows are they, and are they used?
-- empty: no trained run of this database has gates that were looked at.
-- Of the arms that differ in the gate's formula alone, those with most formulas, then streams, then runs.
-- A row's reads are those of the training text; foreign ones are made by another n-gram. A token's rows are gathered for nothing where all of its gates
-- are at most 0.05: all rows have the same bytes, so this is a share of traffic too. What bytes cost: gather_gbps, of the gather in words.
WITH parts AS (
    SELECT c.formula, c.seed, c.point_key, '["' || replace(s.name, ':', '","') || '"]' AS name, s.step, s.value
    FROM chosen c JOIN series s ON s.block_id = c.block_id AND s.point_key = c.point_key
    AND (s.name GLOB 'rows_foreign:*' OR s.name GLOB 'rows_collided:*' OR s.name GLOB 'gate_decile:unused:*' OR s.name GLOB 'gate_foreign:mean:*' OR s.name GLOB 'gate_foreign:n:*' OR s.name GLOB 'gathered_bytes:*')
), named AS (
    SELECT formula, seed, point_key, step, value, CASE WHEN name ->> '$[0]' = 'rows_foreign' THEN 'foreign' WHEN name ->> '$[0]' = 'rows_collided' THEN 'collided'
        WHEN name ->> '$[0]' = 'gathered_bytes' THEN 'bytes' WHEN name ->> '$[1]' = 'unused' THEN 'unused' WHEN name ->> '$[1]' = 'n' THEN 'tokens' ELSE 'gate' END AS part,
        CAST(iif(name ->> '$[0]' LIKE 'gate%', name ->> '$[2]', name ->> '$[1]') AS INTEGER) AS layer
    FROM parts
), means AS (
    SELECT formula, layer, part, step, seed, avg(value) AS value, min(point_key) AS point_key FROM named GROUP BY 1, 2, 3, 4, 5
), bandwidth AS ( -- of what this machine's CPU gathers from memory, the fastest from the largest table, of f32 rows, which models are trained with, if there are
    SELECT v.median AS gbps, printf('%s rows, %s thread%s, %s', v.axes_json ->> '$.row_format', v.axes_json ->> '$.threads', iif(v.axes_json ->> '$.threads' = 1, '', 's'),
        v.axes_json ->> '$.variant') AS gather
    FROM main.v_summary v JOIN points p USING (point_key)
    WHERE v.experiment = 'gather' AND v.metric = 'gather_gbps' AND v.backend = 'cpu' AND v.kind = 'measured' AND v.outcome = 'measured' AND NOT p.is_roof
        AND p.machine_id = (SELECT machine_id FROM runs WHERE run_id = :run) AND coalesce(v.axes_json ->> '$.cache', 'rotate') = 'rotate'
    ORDER BY v.axes_json ->> '$.row_format' = 'f32' DESC, CAST(v.axes_json ->> '$.rows' AS INTEGER) DESC, v.median DESC LIMIT 1
)
SELECT formula || printf(', layer %d', layer) AS series, formula, layer, part, step, iif(part IN ('gate', 'tokens'), (step + 0.5) / 10, step + 1) AS place,
    iif(part IN ('foreign', 'collided', 'unused'), 100, 1) * (test ->> '$.mean') AS value, iif(part IN ('foreign', 'collided', 'unused'), 100, 1) * (test ->> '$.lo') AS lo,
    iif(part IN ('foreign', 'collided', 'unused'), 100, 1) * (test ->> '$.hi') AS hi, test ->> '$.n' AS n,
    (SELECT gbps FROM bandwidth) AS gather_gbps, (SELECT gather FROM bandwidth) AS gather, point_key
FROM (SELECT formula, layer, part, step, paired_test(value) AS test, min(point_key) AS point_key FROM means GROUP BY 1, 2, 3, 4)
ORDER BY formula DESC, layer, part, step;
