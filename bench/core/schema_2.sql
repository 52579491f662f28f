-- Schema version 2: what comparisons decided.

-- One row per point compared, of `engram ab` (one run holds both sides) or `engram compare` (two runs). Ratios are
-- of times, new / base: below 1 is faster. NULL where there were too few samples for an interval.
CREATE TABLE verdicts (
    run_id TEXT NOT NULL REFERENCES runs,         -- the new side's
    base_run_id TEXT NOT NULL REFERENCES runs,    -- the old side's
    point_key TEXT NOT NULL REFERENCES points,
    base_point_key TEXT NOT NULL REFERENCES points,
    kind TEXT NOT NULL CHECK (kind IN ('ab', 'compare')),
    verdict TEXT NOT NULL CHECK (verdict IN ('faster', 'slower', 'same', 'unclear')),
    ratio REAL,
    ratio_lo REAL,                                -- 95 % interval
    ratio_hi REAL,
    p REAL,                                       -- two-sided, of "nothing differs"
    p_corrected REAL,                             -- Holm, over n_compared points
    n_compared INTEGER NOT NULL CHECK (n_compared > 0),
    control_ratio REAL,                           -- old build / old build; compare has none
    floor REAL NOT NULL,                          -- relative differences up to this are not called
    threshold REAL NOT NULL,                      -- nor up to this
    band REAL NOT NULL,                           -- same: the interval lies within 1 +- this
    alpha REAL NOT NULL,                          -- family-wise error
    resolution_ns REAL NOT NULL,                  -- least difference of two samples that is called
    base_ns REAL,                                 -- medians of one call
    new_ns REAL,
    n_pairs INTEGER NOT NULL,
    n_segments INTEGER NOT NULL,                  -- 0: the unit of the test was the sample
    reason TEXT NOT NULL,
    PRIMARY KEY (run_id, base_run_id, point_key)
) STRICT, WITHOUT ROWID;
