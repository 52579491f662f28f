/* Digests of the object files of kernels and experiments, written at build time by
 * cmake/objects.cmake: the part of a point's key that says which code ran. Debug information is
 * stripped before hashing, so a moved comment changes nothing. */
#ifndef ENG_BENCH_OBJECTS_H
#define ENG_BENCH_OBJECTS_H

typedef enum EngObjectPart {
    ENG_OBJECT_KERNEL,           /* of kernels/ */
    ENG_OBJECT_DEVICE,           /* of kernels/cuda/, by nvcc: the digest is of what it was given */
    ENG_OBJECT_EXPERIMENT,       /* of bench/experiments/, defines an experiment */
    ENG_OBJECT_EXPERIMENT_SHARED /* of bench/experiments/, used by several */
} EngObjectPart;

typedef struct EngObject {
    const char *name; /* "gather_portable.c.o" */
    EngObjectPart part;
    const char *sha256;
} EngObject;

extern const EngObject eng_objects[]; /* ends with a NULL name */
extern const char *const eng_objects_commit;

#endif
