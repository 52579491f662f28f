/* Between nsys_file.c and nsys_tables.c: how each row struct becomes columns. */
#ifndef ENG_BENCH_TRACE_NSYS_TABLES_H
#define ENG_BENCH_TRACE_NSYS_TABLES_H

#include <stddef.h>

typedef enum EngNsysType {
    ENG_NSYS_INT = 0, /* int64_t, ENG_NSYS_NULL: NULL */
    ENG_NSYS_REAL,    /* double, NAN: NULL */
    ENG_NSYS_TEXT,    /* const char *, NULL: NULL */
    ENG_NSYS_NAME,    /* const char *, interned: the column holds its id in StringIds */
    ENG_NSYS_FIXED    /* the SQL literal `fixed` */
} EngNsysType;

typedef struct EngNsysColumn {
    const char *name; /* NULL ends a table */
    EngNsysType type;
    size_t offset;
    const char *fixed;
} EngNsysColumn;

typedef enum EngNsysTableId {
    ENG_NSYS_TABLE_NVTX = 0,
    ENG_NSYS_TABLE_KERNEL,
    ENG_NSYS_TABLE_MEMCPY,
    ENG_NSYS_TABLE_MEMSET,
    ENG_NSYS_TABLE_API,
    ENG_NSYS_TABLE_SYNC,
    ENG_NSYS_TABLE_OVERHEAD,
    ENG_NSYS_TABLE_GRAPH_NODE,
    ENG_NSYS_TABLE_ENVIRONMENT,
    ENG_NSYS_TABLE_GPU,
    ENG_NSYS_TABLE_CUDA_DEVICE,
    ENG_NSYS_TABLE_CUDA_CONTEXT,
    ENG_NSYS_TABLE_CUDA_STREAM,
    ENG_NSYS_TABLE_EXTERNAL,
    ENG_NSYS_TABLE_DROPS,
    ENG_NSYS_TABLE_COUNT
} EngNsysTableId;

typedef struct EngNsysTable {
    const char *name;
    const EngNsysColumn *columns;
} EngNsysTable;

extern const EngNsysTable eng_nsys_tables[ENG_NSYS_TABLE_COUNT];

#endif
