/* engram merge: bring another results database into this one. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mem.h"
#include "bench/cli/verbs.h"
#include "bench/core/db_merge.h"

static bool same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    return !stat(a, &sa) && !stat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static void print_counts(EngCli *cli, const char *from, const char *to, const EngMergeCounts *c)
{
    printf("%s -> %s: %lld rows added (%lld runs, %lld points, %lld samples), %lld brought up to "
           "date, %lld there before, %lld in conflict\n",
           from, to, (long long)c->added, (long long)c->runs, (long long)c->points,
           (long long)c->samples, (long long)c->updated, (long long)c->same,
           (long long)c->conflicts);
    for (int i = 0; i < c->n_shown; i++) eng_warn("merge", "conflict, ours kept: %s", c->shown[i]);
    if (c->conflicts > c->n_shown)
        eng_warn("merge", "and %lld rows in conflict more", (long long)c->conflicts - c->n_shown);
    if (c->conflicts) eng_cli_exit_with(cli, eng_status_exit_code(ENG_BAD_DATA));
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    EngDb *db = NULL, *other = NULL;
    EngMergeCounts *counts = NULL;
    const char *path = eng_cli_text(cli, "db"), *from = eng_cli_operand(cli, 0);
    if (!from) return ENG_FAIL(err, ENG_USAGE, "merge: name the database to bring in");
    if (same_file(path, from))
        return ENG_FAIL(err, ENG_USAGE, "merge: %s and %s are one database", from, path);
    EngStatus status = eng_alloc_or((void **)&counts, 1, sizeof *counts, "counts", err);
    /* The other one first: a wrong name must not leave a new database behind. */
    if (!status) status = eng_db_open(from, ENG_DB_READ, &other, err);
    if (!status) status = eng_db_open(path, ENG_DB_RUN, &db, err);
    if (!status) status = eng_db_merge(db, other, counts, err);
    if (!status) print_counts(cli, from, path, counts);
    eng_db_close(other);
    eng_db_close(db);
    eng_free(counts);
    return status;
}

static const EngOption g_options[] = {ENG_OPTION_DB};

const EngVerb eng_verb_merge = {
    .name = "merge",
    .operands = "OTHER.db",
    .summary = "bring another results database in: a device's, a colleague's",
    .details =
        "All of it or nothing comes in; merging twice changes nothing, and OTHER.db is only read.\n"
        "Runs that are further along there are brought up to date. Where the two disagree under\n"
        "one key, this database's row stays, the conflict is told, and the exit code is 6.\n"
        "Trace files that OTHER.db names stay where they are.",
    .options = g_options,
    .n_options = 1,
    .max_operands = 1,
    .run = run,
};
