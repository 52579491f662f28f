/* Copies of tables; see table_pages.h. */
#include "bench/experiments/table_pages.h"

#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"

#define PART_BYTES ((size_t)16 << 20)

static EngTablePages *g_tables; /* of this process: a worker */

typedef struct Copy {
    uint8_t *to;
    const uint8_t *from;
    size_t n;
} Copy;

static void copy_part(void *context, int64_t part)
{
    const Copy *copy = context;
    size_t at = (size_t)part * PART_BYTES;
    size_t n = copy->n - at < PART_BYTES ? copy->n - at : PART_BYTES;
    memcpy(copy->to + at, copy->from + at, n);
}

static EngStatus copy_to_pages(const uint8_t *from, size_t n, EngPageKind kind, EngPages *pages,
                               EngErr *err)
{
    EngStatus status = eng_pages_map(pages, n, kind, err);
    if (status) return status;
    Copy copy = {pages->bytes, from, n};
    eng_parallel_for((int64_t)((n + PART_BYTES - 1) / PART_BYTES), 0, copy_part, &copy);
    return ENG_OK;
}

static void free_pages(EngTablePages *pages)
{
    eng_pages_unmap(&pages->values);
    eng_pages_unmap(&pages->scales);
    eng_free(pages);
}

static bool same_table(const EngTable *a, const EngTable *b)
{
    return a->values == b->values && a->scales == b->scales && a->format == b->format &&
           a->row_dims == b->row_dims && a->rows == b->rows;
}

EngStatus eng_table_pages_take(const EngTable *table, EngPageKind kind, EngTablePages **out,
                               EngErr *err)
{
    EngTablePages *p = g_tables;
    while (p && (p->values.kind != kind || !same_table(&p->source, table))) p = p->next;
    *out = p;
    if (p) {
        p->users++;
        return ENG_OK;
    }
    EngStatus status = eng_alloc_or((void **)&p, 1, sizeof *p, "a table's copy", err);
    if (status) return status;
    size_t rows = (size_t)table->rows;
    size_t scale_bytes = rows * eng_row_scale_bytes(table->format, table->row_dims);
    status =
        copy_to_pages(table->values, rows * eng_row_stride_bytes(table->format, table->row_dims),
                      kind, &p->values, err);
    if (!status && scale_bytes)
        status = copy_to_pages(table->scales, scale_bytes, kind, &p->scales, err);
    if (status) {
        free_pages(p);
        return status;
    }
    p->source = p->table = *table;
    p->table.values = p->values.bytes;
    p->table.scales = p->scales.bytes;
    p->huge_share = eng_pages_huge_share(&p->values);
    p->users = 1;
    p->next = g_tables;
    g_tables = p;
    *out = p;
    return ENG_OK;
}

void eng_table_pages_drop(EngTablePages *pages)
{
    if (!pages || --pages->users) return;
    EngTablePages **link = &g_tables;
    while (*link != pages) link = &(*link)->next;
    *link = pages->next;
    free_pages(pages);
}
