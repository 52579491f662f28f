SELECT max(models) || (SELECT group_concat(printf('; %s: a layer is most like layer %s', series, most), '') || ' of the other model'
    FROM (SELECT series, group_concat(reference, ', ') AS most FROM (SELECT series, layer, reference, max(cka) FROM figure GROUP BY series, layer ORDER BY series, layer) GROUP BY series))
    || ' (in the order of layers).' FROM figure;
