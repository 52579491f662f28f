/* See open_table.h. */
#include "bench/experiments/open_table.h"

#include <math.h>
#include <string.h>

#include "kernels/store/residency.h"

#define COLD_SHARE 0.001 /* of the file's pages that may stay: 1/1000 of requests */
#define WARM_SHARE 0.999

const char *const eng_words_residency[] = {"warm", "cold", "as_found", NULL};

static EngOpenTable *g_tables; /* of this process: a worker */

EngStatus eng_open_table_read(const EngPoint *point, EngRowFormat format, EngStoreSpec *spec,
                              EngResidency *residency, EngErr *why)
{
    const char *word = eng_point_word(point, "residency");
    EngStatus status = eng_store_spec_read(point, format, spec, why);
    if (status) return status;
    *residency = !strcmp(word, "warm") ? ENG_WARM : strcmp(word, "cold") ? ENG_AS_FOUND : ENG_COLD;
    if (spec->kind == ENG_STORE_MEMORY && *residency != ENG_WARM)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "memory store: its rows are never cold");
    return ENG_OK;
}

EngStatus eng_open_table(EngOpenTable *table, const EngResources *resources, const EngShape *shape,
                         const EngPoint *point, EngErr *err)
{
    memset(table, 0, sizeof *table);
    table->resident_share = NAN;
    EngStatus status =
        eng_open_table_read(point, shape->row_format, &table->spec, &table->residency, err);
    if (!status)
        status = eng_table_file_ready(resources, shape->row_format, shape->row_dims,
                                      shape->address.rows[0], table->path, err);
    bool may_cache = table->residency != ENG_AS_FOUND || table->spec.options.direct;
    if (!status && table->spec.kind != ENG_STORE_MEMORY) /* which compares what it loads */
        status = eng_table_file_sound(resources, table->path, may_cache, err);
    if (!status) status = eng_store_spec_open(&table->spec, table->path, &table->store, err);
    if (status) return status;
    table->next = g_tables;
    g_tables = table;
    return ENG_OK;
}

void eng_open_table_close(EngOpenTable *table)
{
    EngOpenTable **link = &g_tables;
    while (*link && *link != table) link = &(*link)->next;
    if (*link) *link = table->next;
    eng_store_destroy(table->store);
    memset(table, 0, sizeof *table);
}

static EngStatus make_cold(EngOpenTable *table, EngErr *err)
{
    for (EngOpenTable *t = g_tables; t; t = t->next) eng_store_release(t->store);
    return eng_residency_drop(table->path, COLD_SHARE, &table->resident_share, err);
}

EngStatus eng_open_table_prepare(EngOpenTable *table, EngErr *err)
{
    double *share = &table->resident_share;
    EngStatus status = ENG_OK;
    if (table->residency == ENG_COLD) {
        status = make_cold(table, err);
    } else if (table->spec.kind != ENG_STORE_MEMORY) {
        status = eng_residency_share(table->path, 0, 0, share, err);
        if (!status && table->residency == ENG_WARM && *share < WARM_SHARE)
            status = eng_residency_warm(table->path, share, err);
        if (!status && table->residency == ENG_WARM && *share < WARM_SHARE)
            status = ENG_FAIL(err, ENG_UNSUPPORTED,
                              "the page cache keeps %.3g %% of the file: it cannot be warm",
                              100 * *share);
    }
    eng_store_reset_stats(table->store);
    return status;
}
