SELECT (SELECT group_concat(part, '; ') FROM (SELECT model || printf(': %d points, mean error %.1f %%, signed %+.1f %%, worst %+.1f %%', count(*), avg(abs(error_percent)), avg(error_percent),
    max(error_percent) FILTER (WHERE abs(error_percent) = (SELECT max(abs(g.error_percent)) FROM figure g WHERE g.series = f.series))) AS part FROM figure f GROUP BY series))
    || printf('. %d of %d predictions are extrapolated. All are of the machine that measured; machines that are not here are not in this picture.', (SELECT count(*) FROM figure WHERE extrapolated), (SELECT count(*) FROM figure));
