/* A database in a temporary folder, and a run of a sweep written into it. */
#ifndef ENG_TESTS_DB_FIXTURE_H
#define ENG_TESTS_DB_FIXTURE_H

#include <dirent.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/db.h"
#include "ledger_fixture.h"

typedef struct Folder {
    char path[64], db[96];
} Folder;

static inline int make_folder(void **state)
{
    Folder *folder = calloc(1, sizeof *folder);
    strcpy(folder->path, "/tmp/engram_test_XXXXXX");
    if (!mkdtemp(folder->path)) return -1;
    snprintf(folder->db, sizeof folder->db, "%s/t.db", folder->path);
    *state = folder;
    return 0;
}

static inline int remove_folder(void **state)
{
    Folder *folder = *state;
    DIR *dir = opendir(folder->path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder->path, entry->d_name);
        unlink(path);
    }
    if (dir) closedir(dir);
    rmdir(folder->path);
    free(folder);
    return 0;
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        EngErr e_ = {0};                                                                           \
        EngErr *err = &e_;                                                                         \
        EngStatus s_ = (call);                                                                     \
        if (s_) fail_msg("%s:%d: %s", __FILE__, __LINE__, e_.text);                                \
    } while (0)

static inline EngDb *open_db(const Folder *folder, EngDbMode mode)
{
    EngDb *db = NULL;
    OK(eng_db_open(folder->db, mode, &db, err));
    return db;
}

/* Rows that the fixture's points refer to. */
static inline void put_common(EngDb *db)
{
    const EngMachineRow machine = {.machine_id = "machine-1",
                                   .cpu_model = "cpu",
                                   .cores = 2,
                                   .memory_bytes = 1 << 30,
                                   .description_json = "{}"};
    const EngBuildRow build = {"build-1", "0", NULL, "cc", "-O3", "{}"};
    OK(eng_db_put_machine(db, &machine, err));
    OK(eng_db_put_build(db, &build, err));
    OK(eng_db_put_stream(db, "stream-prose", "prose", "real", 10, "{}", err));
    OK(eng_db_put_stream(db, "stream-other", "docs", "real", 10, "{}", err));
    OK(eng_db_put_preset(db, "preset-toy", "toy", "{}", err));
    OK(eng_db_put_store(db, "store-memory", "memory", "fp8", "{}", err));
    OK(eng_db_put_metrics(db, &gather, err));
    OK(eng_db_put_metrics(db, &reuse, err));
}

typedef struct Run {
    EngSweep *sweep;
    EngPlan *plan;
    EngArena *arena;
    char run_id[ENG_KEY_HEX];
    bool resumed;
    EngPlanCounts counts;
    EngLedgerBlock *blocks;
    int n_blocks;
} Run;

/* Begins (or resumes) a run of the sweep and reads its unfinished blocks. */
static inline Run begin_run(EngDb *db, const char *text, bool fresh)
{
    Run run = {.sweep = good_sweep(&catalog, text)};
    run.plan = good_plan(run.sweep, &identity);
    run.arena = eng_arena_create();
    const EngRunSpec spec = {"machine-1", "build-1", 1, "[]", "s", text, run.plan->plan_key, "{}"};
    OK(eng_db_run_begin(db, &spec, fresh, run.run_id, &run.resumed, err));
    OK(eng_db_plan_write(db, run.run_id, run.plan, fresh, &run.counts, err));
    OK(eng_db_blocks(db, run.run_id, run.plan, run.arena, &run.blocks, &run.n_blocks, err));
    return run;
}

static inline void free_run(Run *run)
{
    eng_plan_free(run->plan);
    eng_sweep_free(run->sweep);
    eng_arena_destroy(run->arena);
}

/* One sample of a point; its values are multiples of `value`. */
static inline void put_sample(EngDb *db, const char *block_id, const EngPlanPoint *point,
                              int segment, int pair, int64_t ns, double value)
{
    const EngSampleId id = {block_id, point->point_key, segment, pair};
    const EngTiming timing = {.inner = 2, .wall_ns = ns, .cpu_ns = ns + 7};
    const double values[] = {value, 2 * value, NAN};
    OK(eng_db_put_sample(db, &id, 0, false, &timing, point->point.experiment, values, err));
}

/* Measures all that is left of a block: `pairs` samples of each point in one segment. */
static inline void measure_block(EngDb *db, const EngLedgerBlock *block, int pairs)
{
    int segment;
    OK(eng_db_block_start(db, block->block_id, err));
    OK(eng_db_segment_start(db, block->block_id, 1, &segment, err));
    for (int i = 0; i < block->n_points; i++) {
        const EngPlanPoint *point = block->points[i].plan;
        if (block->points[i].state == ENG_POINT_DONE) continue;
        for (int pair = 0; pair < pairs; pair++)
            put_sample(db, block->block_id, point, segment, pair, 100 + pair, pair);
        if (!point->is_roof)
            OK(eng_db_point_done(db, block->block_id, point->point_key, ENG_OUTCOME_MEASURED, NULL,
                                 "pairs", err));
    }
    OK(eng_db_segment_finish(db, block->block_id, segment, false, "{}", err));
    OK(eng_db_block_done(db, block->block_id, err));
}

static inline void measure_all(EngDb *db, const Run *run, int pairs)
{
    for (int i = 0; i < run->n_blocks; i++) measure_block(db, &run->blocks[i], pairs);
    OK(eng_db_run_finish(db, run->run_id, ENG_RUN_DONE, err));
}

static inline int64_t number(EngDb *db, const char *sql)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(eng_db_handle(db), sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return n;
}

#endif
