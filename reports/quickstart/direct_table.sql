-- A table with a row for every possible n-gram, against the memory of this machine.
-- empty: This run has no collide point.
SELECT printf('%s-grams', v.axes_json ->> '$.order') AS "order",
    CASE WHEN v.median < 1e12 THEN printf('%.1f GB', v.median / 1e9)
        WHEN v.median < 1e15 THEN printf('%.1f TB', v.median / 1e12)
        WHEN v.median < 1e18 THEN printf('%.1f PB', v.median / 1e15)
        WHEN v.median < 1e21 THEN printf('%.1f EB', v.median / 1e18)
        ELSE printf('%.1f ZB', v.median / 1e21) END AS "direct table",
    printf(CASE WHEN v.median < 100 * m.memory_bytes THEN '%.3g' WHEN v.median < 1e6 * m.memory_bytes THEN '%,d'
        ELSE '%.1e' END, 1.0 * v.median / m.memory_bytes) AS "times this machine's memory",
    printf('%,d', max(n.median)) AS "n-grams that occur, most in a corpus"
FROM v_summary v
JOIN v_summary n ON n.run_id = v.run_id AND n.point_key = v.point_key AND n.metric = 'ngrams'
JOIN runs r ON r.run_id = v.run_id
JOIN machines m USING (machine_id)
WHERE v.run_id = :run AND v.experiment = 'collide' AND v.metric = 'direct_table_bytes' AND v.outcome = 'measured'
GROUP BY v.axes_json ->> '$.order', v.median
ORDER BY CAST(v.axes_json ->> '$.order' AS INTEGER);
