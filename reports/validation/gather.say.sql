SELECT printf('%d points, predicted with a mean absolute error of %.1f %% (gate 20 %%) and a signed error of %+.1f %%; the worst is %+.0f %%. %s',
    count(*), 100 * avg(abs(predicted / measured - 1)), 100 * avg(predicted / measured - 1),
    (SELECT 100 * (f.predicted / f.measured - 1) FROM figure f ORDER BY abs(f.predicted / f.measured - 1) DESC LIMIT 1),
    iif(sum(extrapolated), printf('%d lie outside what was calibrated. ', sum(extrapolated)), '')
    || 'Fitted' || substr(max(provenance), instr(max(provenance), ' on '), instr(max(provenance), ': ') - instr(max(provenance), ' on ')) || '.')
FROM figure;
