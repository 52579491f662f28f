/* engram runs: which runs a database holds, and what they can be called. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "bench/cli/table.h"
#include "bench/cli/verbs.h"
#include "bench/core/db_runs.h"

/* The arguments after the program's name: '["engram","run","a.sweep"]' -> "run a.sweep". */
static void command_text(const char *json, EngStr *out)
{
    json_t *argv = json_loads(json, 0, NULL);
    for (size_t i = 1; i < json_array_size(argv); i++)
        eng_str_printf(out, "%s%s", i > 1 ? " " : "", json_string_value(json_array_get(argv, i)));
    json_decref(argv);
}

static EngStatus print_run(EngTextTable *table, const EngDb *db, const EngRunRow *run, int back,
                           EngErr *err)
{
    bool killed = !strcmp(run->state, "running") && !eng_db_run_is_alive(db, run->run_id);
    EngStr command = {0};
    command_text(run->command_json, &command);
    EngStatus status = eng_str_status(&command, err);
    if (status) return status;
    eng_table_printf(table, "%.8s", run->run_id);
    if (back)
        eng_table_printf(table, "latest~%d", back);
    else
        eng_table_text(table, "latest");
    eng_table_printf(table, "%.19sZ", run->started_utc); /* to the second */
    eng_table_text(table, killed ? "killed" : run->state);
    eng_table_text(table, run->sweep_name);
    eng_table_printf(table, "%d", run->points);
    eng_table_printf(table, "%d", run->measured);
    eng_table_printf(table, "%d", run->verdicts);
    if (command.n) command.text[eng_utf8_bytes(command.text, 60)] = 0;
    eng_table_text(table, command.n ? command.text : "");
    eng_str_free(&command);
    return ENG_OK;
}

static EngStatus print_runs(EngDb *db, const EngRunRow *runs, int n, EngErr *err)
{
    static const EngTableColumn columns[] = {
        {"run", false},     {"or", false},      {"started", false},
        {"state", false},   {"sweep", false},   {"points", true},
        {"measured", true}, {"verdicts", true}, {"command", false}};
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, 9, err);
    for (int i = 0; i < n && !status; i++) status = print_run(table, db, &runs[i], i, err);
    if (!status) status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    EngDb *db = NULL;
    EngRunRow *runs;
    int n = 0;
    EngArena *arena = eng_arena_create();
    if (!arena) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory");
    EngStatus status = eng_db_open(eng_cli_text(cli, "db"), ENG_DB_READ, &db, err);
    if (!status) status = eng_db_runs(db, arena, &runs, &n, err);
    if (!status && !n)
        status =
            ENG_FAIL(err, ENG_NOT_FOUND, "%s: no run yet; `engram run` makes one", eng_db_path(db));
    if (!status) status = print_runs(db, runs, n, err);
    eng_db_close(db);
    eng_arena_destroy(arena);
    return status;
}

static const EngOption g_options[] = {ENG_OPTION_DB};

const EngVerb eng_verb_runs = {
    .name = "runs",
    .operands = "",
    .summary = "list the runs of a results database, newest first",
    .details = "Wherever a run is asked for, its id, the first characters of one, `latest`, or "
               "`latest~N` (the\nN-th before it) name it: `engram compare latest~1 latest`. "
               "Points found measured by another run\ncount as measured.",
    .options = g_options,
    .n_options = 1,
    .max_operands = 0,
    .run = run,
};
