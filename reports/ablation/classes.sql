-- title: Loss less that of pure MoE, by class of the token predicted
-- empty: no seed has both a pure MoE and an arm with Engram.
-- The arm with Engram that has most seeds, and the same model with Engram's output at zero, less the pure MoE of the same seed.
SELECT part, series, what, dense_rank() OVER (PARTITION BY part ORDER BY what) AS place, difference, lo, hi, n, moe, rho, models, count_in_training, point_key
FROM loss_parts_drawn WHERE family = 'class' ORDER BY part, series, place;
