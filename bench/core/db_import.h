/* Points that were not measured here: kind `imported`, `simulated` or `published`, in the same
 * tables as measured ones.
 *
 * One import is one run with one block and one segment: its ids are content keys of what was
 * imported and how, so that importing the same again changes nothing and databases merge. */
#ifndef ENG_BENCH_DB_IMPORT_H
#define ENG_BENCH_DB_IMPORT_H

#include "bench/core/db.h"

typedef struct EngImportAxis {
    const char *axis, *value;
    double number; /* NAN for words */
} EngImportAxis;

typedef struct EngImportPoint {
    const char *variant;
    const char *kind;          /* NULL: imported */
    const char *provenance;    /* NULL: the import's */
    const EngImportAxis *axes; /* sorted by name: makes axes_json */
    int n_axes;
    int64_t n_samples;
    const int64_t *wall_ns; /* [n_samples] */
    const double *values;   /* [n_samples, experiment->n_metrics], NAN: not known */
} EngImportPoint;

typedef struct EngImportDrop {
    const char *what;
    int64_t n;
} EngImportDrop;

typedef struct EngImport {
    const char *source_key;          /* names content and settings: makes all keys */
    const EngExperiment *experiment; /* name and metrics */
    const EngMachineRow *machine;
    const EngBuildRow *build;
    const char *backend, *started_utc, *command_json, *name, *text;
    const char *provenance, *evidence_json;
    const EngImportDrop *drops; /* records refused, stored with every point; zeros are not */
    int n_drops;
    const EngImportPoint *points;
    int n_points;
} EngImport;

/* In one transaction. *added false: it was there. run_id: of the import, either way. */
EngStatus eng_db_import(EngDb *db, const EngImport *import, char run_id[ENG_KEY_HEX], bool *added,
                        EngErr *err);

#endif
