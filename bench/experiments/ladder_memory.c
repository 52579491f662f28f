/* Shared working sets; see ladder_memory.h. */
#include "bench/experiments/ladder_memory.h"

#include "base/mem.h"

#define CYCLE_SEED 1 /* one order of slots for all lifetimes: only the layout of pages differs */

static EngLadderMemory *g_sets; /* of this process: a worker */

EngStatus eng_ladder_memory_take(size_t bytes, EngPageKind kind, EngLadderLine line,
                                 EngLadderMemory **out, EngErr *err)
{
    EngLadderMemory *m = g_sets;
    while (m && (m->pages.n != bytes || m->pages.kind != kind || m->ladder.line != line))
        m = m->next;
    *out = m;
    if (m) {
        m->users++;
        return ENG_OK;
    }
    EngStatus status = eng_alloc_or((void **)&m, 1, sizeof *m, "a ladder", err);
    if (status) return status;
    status = eng_pages_map(&m->pages, bytes, kind, err);
    if (!status) status = eng_ladder_init(&m->ladder, line, m->pages.bytes, bytes, CYCLE_SEED, err);
    if (status) {
        eng_pages_unmap(&m->pages);
        eng_free(m);
        return status;
    }
    eng_ladder_fill(&m->ladder);
    m->huge_share = eng_pages_huge_share(&m->pages);
    m->users = 1;
    m->next = g_sets;
    g_sets = m;
    *out = m;
    return ENG_OK;
}

void eng_ladder_memory_drop(EngLadderMemory *memory)
{
    if (!memory || --memory->users) return;
    EngLadderMemory **link = &g_sets;
    while (*link != memory) link = &(*link)->next;
    *link = memory->next;
    eng_pages_unmap(&memory->pages);
    eng_free(memory);
}
