-- engram.db, schema version 1. Ids are content keys (first 128 bits of a SHA-256, hex) or UUIDs, never row
-- numbers, so that databases merge. Times are nanoseconds; text times are UTC.

CREATE TABLE machines (
    machine_id TEXT PRIMARY KEY,          -- key of the fields below; no host, boot or kernel-build names
    cpu_model TEXT NOT NULL,
    cores INTEGER NOT NULL CHECK (cores > 0),
    memory_bytes INTEGER NOT NULL,
    cache_bytes INTEGER,                  -- last-level cache as the operating system tells it
    gpu TEXT,
    description_json TEXT NOT NULL        -- topology, caches, instruction sets
) STRICT;

CREATE TABLE builds (
    build_id TEXT PRIMARY KEY,
    version TEXT NOT NULL,
    commit_id TEXT,
    compiler TEXT NOT NULL,
    flags TEXT NOT NULL,
    libraries_json TEXT NOT NULL
) STRICT;

CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    started_utc TEXT NOT NULL,
    ended_utc TEXT,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'interrupted', 'failed')),
    machine_id TEXT NOT NULL REFERENCES machines,
    build_id TEXT NOT NULL REFERENCES builds,
    seed INTEGER NOT NULL,
    command_json TEXT NOT NULL,           -- argv
    sweep_name TEXT NOT NULL,
    sweep_text TEXT NOT NULL,             -- the effective sweep, as it would be written in a file
    plan_key TEXT NOT NULL,               -- key of points and settings: an unfinished run is found by it
    environment_json TEXT NOT NULL        -- kernel, load, governor: evidence, not identity
) STRICT;

CREATE TABLE streams (
    stream_digest TEXT PRIMARY KEY,
    corpus TEXT NOT NULL,
    kind TEXT NOT NULL,
    n_tokens INTEGER NOT NULL,
    header_json TEXT NOT NULL
) STRICT;

CREATE TABLE presets (
    preset_digest TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    preset_json TEXT NOT NULL
) STRICT;

CREATE TABLE stores (
    store_digest TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    row_format TEXT NOT NULL,
    description_json TEXT NOT NULL
) STRICT;

CREATE TABLE metrics (
    experiment TEXT NOT NULL,
    metric TEXT NOT NULL,
    unit TEXT NOT NULL,
    direction INTEGER NOT NULL CHECK (direction IN (-1, 0, 1)),
    clock TEXT NOT NULL CHECK (clock IN ('cpu', 'wall', 'none')),
    help TEXT NOT NULL,
    PRIMARY KEY (experiment, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE points (
    point_key TEXT PRIMARY KEY,           -- config key + variant digest + machine id
    config_key TEXT NOT NULL,
    experiment TEXT NOT NULL,
    variant TEXT NOT NULL,                -- '' when the experiment has none
    backend TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('measured', 'simulated', 'imported', 'published')),
    is_roof INTEGER NOT NULL CHECK (is_roof IN (0, 1)),
    variant_digest TEXT NOT NULL,
    machine_id TEXT NOT NULL,
    stream_digest TEXT REFERENCES streams,
    preset_digest TEXT REFERENCES presets,
    store_digest TEXT REFERENCES stores,
    axes_json TEXT NOT NULL,              -- every axis, defaults included, keys sorted
    provenance TEXT NOT NULL
) STRICT;
CREATE INDEX points_by_config ON points (config_key);

CREATE TABLE axis_values (
    point_key TEXT NOT NULL REFERENCES points,
    axis TEXT NOT NULL,
    value TEXT NOT NULL,
    number REAL,                          -- NULL for words
    is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
    PRIMARY KEY (point_key, axis)
) STRICT, WITHOUT ROWID;

CREATE TABLE blocks (
    block_id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs, -- the run that measures it
    ordinal INTEGER NOT NULL,
    experiment TEXT NOT NULL,
    compare_axis TEXT NOT NULL,
    seed INTEGER NOT NULL,
    estimate_ns INTEGER NOT NULL,
    segments_wanted INTEGER NOT NULL,
    pairs_wanted INTEGER NOT NULL,        -- samples per point and segment
    state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'done'))
) STRICT;
CREATE INDEX blocks_by_run ON blocks (run_id, ordinal);

-- The ledger: one row per point of a block, written before anything runs.
CREATE TABLE block_points (
    block_id TEXT NOT NULL REFERENCES blocks,
    point_key TEXT NOT NULL REFERENCES points,
    ordinal INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'done')),
    outcome TEXT CHECK (outcome IN ('measured', 'skipped', 'failed', 'wrong')),
    reason TEXT,                          -- why skipped, failed or wrong
    stop_reason TEXT,                     -- why sampling ended
    PRIMARY KEY (block_id, point_key),
    CHECK ((state = 'done') = (outcome IS NOT NULL)),
    CHECK (outcome IS NULL OR outcome = 'measured' OR reason IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX block_points_by_point ON block_points (point_key);

-- Which points a run owns, and the block that measured each (its own, or one found).
CREATE TABLE run_points (
    run_id TEXT NOT NULL REFERENCES runs,
    point_key TEXT NOT NULL REFERENCES points,
    block_id TEXT NOT NULL REFERENCES blocks,
    PRIMARY KEY (run_id, point_key)
) STRICT, WITHOUT ROWID;

-- A worker lifetime within a block. Pairs never cross segments.
CREATE TABLE segments (
    block_id TEXT NOT NULL REFERENCES blocks,
    segment INTEGER NOT NULL,
    started_utc TEXT NOT NULL,
    ended_utc TEXT,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'broken')),
    seed INTEGER NOT NULL,
    evidence_json TEXT NOT NULL,          -- steal, faults, switches over the segment
    PRIMARY KEY (block_id, segment)
) STRICT, WITHOUT ROWID;

CREATE TABLE samples (
    block_id TEXT NOT NULL,
    point_key TEXT NOT NULL,
    segment INTEGER NOT NULL,
    pair INTEGER NOT NULL,                -- same pair: taken in the same round of the segment
    position INTEGER NOT NULL,            -- place in the shuffled round
    inner_iterations INTEGER NOT NULL CHECK (inner_iterations > 0),
    wall_ns INTEGER NOT NULL CHECK (wall_ns >= 0),
    cpu_ns INTEGER NOT NULL CHECK (cpu_ns >= 0),
    traced INTEGER NOT NULL CHECK (traced IN (0, 1)),
    PRIMARY KEY (block_id, point_key, segment, pair),
    FOREIGN KEY (block_id, segment) REFERENCES segments,
    FOREIGN KEY (block_id, point_key) REFERENCES block_points
) STRICT, WITHOUT ROWID;

CREATE TABLE sample_values (
    block_id TEXT NOT NULL,
    point_key TEXT NOT NULL,
    segment INTEGER NOT NULL,
    pair INTEGER NOT NULL,
    metric TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (block_id, point_key, metric, segment, pair),
    FOREIGN KEY (block_id, point_key, segment, pair) REFERENCES samples
) STRICT, WITHOUT ROWID;

CREATE TABLE residuals (
    block_id TEXT NOT NULL,
    point_key TEXT NOT NULL,
    segment INTEGER NOT NULL,
    measure TEXT NOT NULL CHECK (measure IN ('rel', 'abs', 'ulp', 'exact')),
    max_abs REAL,
    max_rel REAL,
    limit_value REAL NOT NULL,
    n_checked INTEGER NOT NULL,
    n_outputs INTEGER NOT NULL,
    n_nonfinite INTEGER NOT NULL,
    pass INTEGER NOT NULL CHECK (pass IN (0, 1)),
    note TEXT NOT NULL,
    PRIMARY KEY (block_id, point_key, segment)
) STRICT, WITHOUT ROWID;

-- The roofs of a block: per shape (axes but the variant) the fastest roof point, with what was tried. A block
-- that compares variants has one.
CREATE TABLE roofs (
    block_id TEXT NOT NULL REFERENCES blocks,
    roof_point_key TEXT NOT NULL REFERENCES points,
    clock TEXT NOT NULL CHECK (clock IN ('cpu', 'wall')),
    tuned_json TEXT NOT NULL,             -- medians of the family, the choice and its parameters
    PRIMARY KEY (block_id, roof_point_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE histograms (
    block_id TEXT NOT NULL,
    point_key TEXT NOT NULL,
    segment INTEGER NOT NULL,
    pair INTEGER NOT NULL,
    name TEXT NOT NULL,                   -- 'gate', 'score'
    layer INTEGER NOT NULL,               -- 0-based
    stream INTEGER NOT NULL,
    scale TEXT NOT NULL CHECK (scale IN ('linear', 'signed_log')),
    lo REAL NOT NULL,
    hi REAL NOT NULL,
    counts_json TEXT NOT NULL,            -- array of bin counts
    PRIMARY KEY (block_id, point_key, segment, pair, name, layer, stream)
) STRICT, WITHOUT ROWID;

CREATE TABLE series (
    block_id TEXT NOT NULL,
    point_key TEXT NOT NULL,
    name TEXT NOT NULL,
    step INTEGER NOT NULL,
    value REAL,
    PRIMARY KEY (block_id, point_key, name, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE artifacts (
    artifact_id TEXT PRIMARY KEY,
    block_id TEXT NOT NULL,
    point_key TEXT NOT NULL,
    kind TEXT NOT NULL,
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL
) STRICT;

CREATE TABLE drops (
    block_id TEXT NOT NULL,
    point_key TEXT NOT NULL,
    segment INTEGER NOT NULL,
    what TEXT NOT NULL,
    count INTEGER NOT NULL CHECK (count >= 0),
    PRIMARY KEY (block_id, point_key, segment, what)
) STRICT, WITHOUT ROWID;

-- Ranks (1-based) of the order statistics that bound the median with 95 % confidence for n samples, exact
-- binomial; NULL below 6 samples, where no such interval exists. Filled by the migration for n = 1..10000.
CREATE TABLE median_ranks (
    n INTEGER PRIMARY KEY,
    lo INTEGER,
    hi INTEGER
) STRICT;
