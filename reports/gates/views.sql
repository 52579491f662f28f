-- The runs that all figures show: of the arms that differ in the gate's formula alone, those with most formulas, then streams,
-- then runs.
CREATE TEMP VIEW chosen AS WITH runs AS (
    SELECT t.*, json_remove(arm, '$.gate') AS rest FROM v_train t WHERE loss IS NOT NULL
    AND EXISTS (SELECT 1 FROM series s WHERE s.block_id = t.block_id AND s.point_key = t.point_key AND s.name LIKE 'gate:mean:%')
)
SELECT *, CASE gate WHEN 'copysign' THEN 'signed root' WHEN 'plain' THEN 'no root' ELSE gate END
    || note AS formula
FROM runs WHERE rest = (SELECT rest FROM runs GROUP BY rest ORDER BY count(DISTINCT gate) DESC, max(CAST(streams AS INTEGER)) DESC, count(*) DESC, rest LIMIT 1);
