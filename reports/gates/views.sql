-- The runs that all figures show: of the arms that differ in the gate's formula alone, those with most formulas, then streams,
-- then runs.
CREATE TEMP VIEW chosen AS WITH runs AS (
    SELECT t.*, json_remove(arm, '$.gate') AS rest FROM v_train t WHERE loss IS NOT NULL
    AND EXISTS (SELECT 1 FROM series s WHERE s.block_id = t.block_id AND s.point_key = t.point_key AND s.name LIKE 'gate:mean:%')
)
SELECT *, CASE gate WHEN 'copysign' THEN 'signed root' WHEN 'plain' THEN 'no root' ELSE gate END
    || note AS formula
FROM runs WHERE rest = (SELECT rest FROM runs GROUP BY rest ORDER BY count(DISTINCT gate) DESC, max(CAST(streams AS INTEGER)) DESC, count(*) DESC, rest LIMIT 1);
-- What reading rows costs: of the CPU's gathers in the database, of whatever run, the fastest from the largest table, of f32 rows
-- (which is what models are trained with) where there are such.
CREATE TEMP VIEW bandwidth AS
SELECT v.median AS gbps, printf('%s rows, %s thread%s, %s', v.axes_json ->> '$.row_format', v.axes_json ->> '$.threads', iif(v.axes_json ->> '$.threads' = 1, '', 's'),
    v.axes_json ->> '$.variant') AS gather
FROM main.v_summary v JOIN points p USING (point_key)
WHERE v.experiment = 'gather' AND v.metric = 'gather_gbps' AND v.backend = 'cpu' AND v.kind = 'measured' AND v.outcome = 'measured' AND NOT p.is_roof
ORDER BY v.axes_json ->> '$.row_format' = 'f32' DESC, CAST(v.axes_json ->> '$.rows' AS INTEGER) DESC, v.median DESC LIMIT 1;
