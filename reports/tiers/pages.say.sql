SELECT coalesce((SELECT 'Estimate of page walks: ' || group_concat(printf('with %d thread%s a row of a table of %.0f MiB costs %+.1f ns on 4 KiB pages against 2 MiB ones (%.0f ns)', threads, iif(threads = 1, '', 's'),
            about_bytes / 1048576, walk_ns, row_ns - walk_ns), '; ')
        FROM figure f WHERE pages = '4k' AND walk_ns IS NOT NULL AND rows = (SELECT max(rows) FROM figure)) || '. ', '')
    || coalesce((SELECT printf('Of the tables called 2m at least %.0f %% lie on huge pages. ', 100 * min(huge_share)) FROM figure WHERE pages = '2m'), '')
    || iif((SELECT max(skipped_1g) FROM figure) > 0, 'There were no 1 GiB pages here: skipped.', '');
