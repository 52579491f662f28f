SELECT (SELECT group_concat(printf('In a table of %s on 4 KiB pages %s reaches %.0f %% of what it reaches on %s pages', iif(s.bytes < 1073741824,
            printf('%d MiB', s.bytes / 1048576), printf('%.3g GiB', s.bytes / 1073741824.0)),
            iif(s.access LIKE 'read%', 'reading', 'reading and storing'), 100 * s.gbps / h.gbps, h.pages), '; ')
        FROM figure s JOIN figure h ON h.access = s.access AND h.bytes = s.bytes AND h.pages = '2m'
        WHERE s.pages = '4k' AND s.bytes = (SELECT max(bytes) FROM figure))
    || printf('. At least %.0f %% of every table that asked for larger pages lies on them.', 100 * (SELECT min(huge_share) FROM figure WHERE pages <> '4k'))
    || coalesce((SELECT ' Pages of 1 GiB: ' || max(b.reason) || '.'
        FROM run_points l JOIN block_points b USING (block_id, point_key) JOIN points p USING (point_key)
        WHERE l.run_id = (SELECT r.run_id FROM run_points r JOIN figure f USING (point_key) LIMIT 1)
            AND p.experiment = 'ladder' AND b.outcome = 'skipped' AND p.axes_json ->> '$.pages' = '1g'), '');
