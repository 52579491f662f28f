/* Working sets of the ladder: filled once per worker and shared by the points that walk the same
 * one, since a set may be as large as memory. */
#ifndef ENG_EXPERIMENTS_LADDER_MEMORY_H
#define ENG_EXPERIMENTS_LADDER_MEMORY_H

#include "kernels/cpu/ladder.h"
#include "kernels/store/pages.h"

typedef struct EngLadderMemory {
    struct EngLadderMemory *next;
    int users;
    EngPages pages;
    EngLadder ladder;
    double huge_share; /* of its bytes, once filled */
} EngLadderMemory;

/* The set of this size, page kind and slots: found, or mapped and filled. ENG_UNSUPPORTED: no such
 * pages. The caller gives it back with eng_ladder_memory_drop. Not for threads. */
EngStatus eng_ladder_memory_take(size_t bytes, EngPageKind kind, EngLadderLine line,
                                 EngLadderMemory **memory, EngErr *err);
void eng_ladder_memory_drop(EngLadderMemory *memory); /* accepts NULL; the last user frees it */

#endif
