/* Axes that several experiments share, each defined once. An experiment's table lists the ones it
 * has: `static const EngAxisDef g_axes[] = {ENG_AXES_TABLE, ENG_AXIS_CORPUS, ...}`. Defaults are
 * V4.1's shapes at a table size that any machine holds. */
#ifndef ENG_EXPERIMENTS_AXES_H
#define ENG_EXPERIMENTS_AXES_H

#include "bench/core/experiment.h"

#define ENG_MAX_POINT_TOKENS (1 << 20)
#define ENG_LAYER_FIRST      (-1)

extern const char *const eng_words_hold[];            /* row_dims embed_dims total_bytes */
extern const char *const eng_words_row_format[];      /* of engram/types.h */
extern const char *const eng_words_formula[];         /* copysign sign plain */
extern const char *const eng_words_pin[];             /* none compact scatter */
extern const char *const eng_words_cache[];           /* rotate warm cold */
extern const char *const eng_words_table_at[];        /* local pinned staged */
extern const char *const eng_words_table_of_gather[]; /* and made */
extern const char *const eng_words_graph[];           /* off on */

#define ENG_AXIS_PRESET_DEF                                                                        \
    {                                                                                              \
        "preset", ENG_AXIS_WORD, "v41-flash", "", 0, 0, NULL,                                      \
            "published or laptop-scale configuration: layers, vocabulary, hidden size"             \
    }
#define ENG_AXIS_LAYER_DEF                                                                         \
    {                                                                                              \
        "layer", ENG_AXIS_INT, "-1", "", -1, 9999, NULL,                                           \
            "0-based layer number of the preset whose table is used; -1: its first"                \
    }
#define ENG_AXIS_ORDERS_DEF                                                                        \
    {                                                                                              \
        "orders", ENG_AXIS_WORD, "2-4", "", 0, 0, NULL,                                            \
            "n-gram lengths, as first-last or one number"                                          \
    }
#define ENG_AXIS_HEADS_DEF                                                                         \
    {                                                                                              \
        "heads", ENG_AXIS_INT, "8", "", 1, ENG_MAX_HEADS, NULL, "K: rows read per order and token" \
    }
#define ENG_AXIS_ROWS_DEF                                                                          \
    {                                                                                              \
        "rows", ENG_AXIS_INT, "131072", "rows", 2, 0x1p40, NULL,                                   \
            "table rows per head: the first candidate for each head's prime"                       \
    }
#define ENG_AXIS_ROW_DIMS_DEF                                                                      \
    {                                                                                              \
        "row_dims", ENG_AXIS_INT, "256", "values", 1, 65536, NULL,                                 \
            "values per row (with hold=embed_dims: at the preset's K)"                             \
    }
#define ENG_AXIS_HOLD_DEF                                                                          \
    {                                                                                              \
        "hold", ENG_AXIS_WORD, "row_dims", "", 0, 0, eng_words_hold,                               \
            "what stays when K, orders or sizes change: values per row, values per order, or all " \
            "bytes of the table"                                                                   \
    }
#define ENG_AXIS_ROW_FORMAT_DEF                                                                    \
    {                                                                                              \
        "row_format", ENG_AXIS_WORD, "fp8", "", 0, 0, eng_words_row_format,                        \
            "how a table row is stored"                                                            \
    }
#define ENG_AXIS_CORPUS_DEF                                                                        \
    {                                                                                              \
        "corpus", ENG_AXIS_WORD, "prose", "", 0, 0, NULL,                                          \
            "token stream: prose docs code multilingual uniform filler synthetic, or imported"     \
    }
/* Threads, and where they run (bench/core/placement.h): two axes of every timed experiment. */
#define ENG_AXIS_THREADS_DEF                                                                       \
    {"threads", ENG_AXIS_INT, "1", "", 1, 1024, NULL, "threads of the kernel"},                    \
    {                                                                                              \
        "pin", ENG_AXIS_WORD, "none", "", 0, 0, eng_words_pin,                                     \
            "processors of the threads: any, neighbouring, or far apart"                           \
    }
/* What calls find in the caches (bench/core/flush.h has the words). */
#define ENG_AXIS_CACHE_DEF                                                                         \
    {                                                                                              \
        "cache", ENG_AXIS_WORD, "rotate", "", 0, 0, eng_words_cache,                               \
            "rotate: other inputs each call; warm: the same; cold: one call after flushing all "   \
            "caches"                                                                               \
    }
/* Where a device's kernels find the table, and how they are launched (staged.h, replay.h). */
#define ENG_AXIS_TABLE_AT "table_at"
#define ENG_AXIS_TABLE_AT_DEF                                                                      \
    {                                                                                              \
        ENG_AXIS_TABLE_AT, ENG_AXIS_WORD, "local", "", 0, 0, eng_words_table_at,                   \
            "local: memory of the processor that runs the kernel; of cuda variants alone: pinned " \
            "host memory read by the device, or rows staged by the host and copied"                \
    }
#define ENG_AXIS_GRAPH "graph"
#define ENG_AXIS_GRAPH_DEF                                                                         \
    {                                                                                              \
        ENG_AXIS_GRAPH, ENG_AXIS_WORD, "off", "", 0, 0, eng_words_graph,                           \
            "on: cuda variants replay a captured graph for each call"                              \
    }
#define ENG_METRIC_LAUNCHES_DEF                                                                    \
    {                                                                                              \
        "launches", "", 0, "none", "cuda: kernels and graphs that the host launched, per call"     \
    }
#define ENG_AXIS_VARIANT_DEF(op)                                                                   \
    {                                                                                              \
        "variant", ENG_AXIS_WORD, "all", "", 0, 0, NULL,                                           \
            "kernel variant of " op "; all: each that is no roof"                                  \
    }
#define ENG_AXIS_TOKENS_DEF(def, help)                                                             \
    {                                                                                              \
        "tokens", ENG_AXIS_INT, def, "tokens", 1, ENG_MAX_POINT_TOKENS, NULL, help                 \
    }

/* What `engram tune` may choose besides the variant. */
extern const EngTunableAxis eng_tunable_placement[];

/* Which rows a token reads ... */
#define ENG_AXES_ADDRESS                                                                           \
    ENG_AXIS_PRESET_DEF, ENG_AXIS_LAYER_DEF, ENG_AXIS_ORDERS_DEF, ENG_AXIS_HEADS_DEF,              \
        ENG_AXIS_ROWS_DEF
/* ... and how large they are. */
#define ENG_AXES_TABLE                                                                             \
    ENG_AXES_ADDRESS, ENG_AXIS_ROW_DIMS_DEF, ENG_AXIS_HOLD_DEF, ENG_AXIS_ROW_FORMAT_DEF

#endif
