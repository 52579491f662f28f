/* Digests of the object files of kernels and experiments, written at build time by
 * cmake/objects.cmake: the part of a point's key that says which code ran. Debug information is
 * stripped before hashing, so a moved comment changes nothing. */
#ifndef ENG_BENCH_OBJECTS_H
#define ENG_BENCH_OBJECTS_H

#include <stdbool.h>

typedef struct EngObject {
    const char *name; /* "gather_portable.c.o" */
    bool kernels;     /* of kernels/, else of bench/experiments/ */
    const char *sha256;
} EngObject;

extern const EngObject eng_objects[]; /* ends with a NULL name */
extern const char *const eng_objects_commit;

#endif
