/* Who measured: the machine (identity), the build (identity of code), the environment of the
 * moment.
 *
 * The machine id is made of what decides speed and stays: CPU model, cores, caches, memory size,
 * GPU. Host name, boot and kernel build are evidence only, so that a reboot does not orphan
 * measurements.
 */
#ifndef ENG_BENCH_MACHINE_H
#define ENG_BENCH_MACHINE_H

#include <stdint.h>
#include "base/digest.h"
#include "bench/core/evidence.h"
#include <engram/kernels.h>

typedef struct EngMachine {
    char machine_id[ENG_KEY_HEX];
    char cpu_model[128];
    int cores;
    int64_t memory_bytes; /* rounded to GiB in the id: firmware reservations move by a few pages */
    int64_t cache_bytes;  /* last-level cache as the operating system tells it, 0: unknown */
    char gpu[128];        /* "" without */
    char *description_json; /* owned */
} EngMachine;

typedef struct EngBuild {
    char build_id[ENG_KEY_HEX];
    const char *version, *compiler, *flags;
    const char *commit;   /* of the sources the program was built from, "-dirty" behind it when they
                             were changed since, "" when not known */
    char *libraries_json; /* owned */
} EngBuild;

EngStatus eng_machine_describe(EngMachine *machine, EngErr *err);
void eng_machine_free(EngMachine *machine);
EngStatus eng_build_describe(EngBuild *build, EngErr *err);
void eng_build_free(EngBuild *build);

/* Digest of the code that a point runs: object code of the variant's operation (all files named
 * after it, and those that serve all operations; the shared object for a plugin) and of the
 * experiment, compiler, flags, linked kernel libraries. A change to one variant makes its
 * operation's others anew too: no file that a variant calls can be missed. kernel NULL: all
 * kernels; experiment NULL: none. */
EngStatus eng_variant_digest(const EngKernel *kernel, const char *experiment,
                             char digest[ENG_KEY_HEX], EngErr *err);

/* The part of it that is ours when the kernel comes from elsewhere: the experiment, compiler and
 * flags. */
EngStatus eng_experiment_digest(const char *experiment, char digest[ENG_KEY_HEX], EngErr *err);

/* Kernel release, load, page sizes, governor: JSON, owned by the caller (eng_free). */
EngStatus eng_environment_json(char **json, EngErr *err);

#endif
