-- title: Does an unbalanced router explain the loss of a run?
-- empty: fewer than two seeds of any arm.
-- Every run: busiest expert in the last quarter of training against its loss less the mean of its arm, and less what other runs of its
-- seed are above theirs.
WITH runs AS (
    SELECT *, loss - avg(loss) OVER (PARTITION BY arm) AS above, count(*) OVER (PARTITION BY arm) AS n
    FROM v_train WHERE loss IS NOT NULL AND load_max IS NOT NULL AND NOT again
), rests AS (
    SELECT *, sum(above) OVER of_seed AS sum_above, count(*) OVER of_seed AS others FROM runs WHERE n > 1 WINDOW of_seed AS (PARTITION BY study, seed)
)
SELECT iif(suppressed_loss IS NULL, 'pure MoE', 'with Engram') || note AS series, load_max, above - coalesce((sum_above - above) / nullif(others - 1, 0), 0) AS rest,
    dead_share, collapsed, rho, experts, CAST(seed AS INTEGER) AS seed, point_key
FROM rests ORDER BY series DESC, load_max;
