SELECT printf('%s: %d arms, %d to %d seeds each; the busiest expert of a batch gets at most %.1f times the mean load (mean over a stretch, %s).', max(models),
    count(DISTINCT series), min(seeds), max(seeds), max(load_max), (SELECT series FROM figure ORDER BY load_max DESC LIMIT 1))
FROM figure;
