-- title: Loss less that of pure MoE, by frequency of the context
-- empty: no seed has both a pure MoE and an arm with Engram.
-- The arm with Engram that has most seeds, and the same model with Engram's output at zero, less the pure MoE of the same seed.
SELECT part, series, what, what + 1 AS place, difference, lo, hi, n, moe, rho, models, count_in_training, point_key
FROM loss_parts_drawn WHERE family = 'decile' ORDER BY part, series, place;
