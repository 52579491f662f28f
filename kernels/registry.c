/* The registry: the arrays of all backends joined and sorted by operation; see engram/kernels.h.
 * A new backend needs its array in `g_backends`, a new variant none of this.
 */
#include <engram/kernels.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define MAX_PER_OP 128

static const EngKernel *const *const g_backends[] = {eng_cpu_kernels, eng_cuda_kernels};

static const char *const g_ops[ENG_OP_COUNT] = {
    [ENG_OP_HASH] = "hash",
    [ENG_OP_GATHER] = "gather",
    [ENG_OP_PROJECT] = "project",
    [ENG_OP_GATE] = "gate",
    [ENG_OP_CONV] = "conv",
    [ENG_OP_LOOKUP] = "lookup",
    [ENG_OP_TRAIN_GATE] = "train_gate",
    [ENG_OP_TRAIN_CONV] = "train_conv",
    [ENG_OP_BACK_GATE] = "back_gate",
    [ENG_OP_BACK_PROJECT] = "back_project",
    [ENG_OP_BACK_GATHER] = "back_gather",
    [ENG_OP_BACK_CONV] = "back_conv",
    [ENG_OP_SGD] = "sgd",
    [ENG_OP_ADAMW] = "adamw",
    [ENG_OP_MUON] = "muon",
    [ENG_OP_SPARSE_ADAM] = "sparse_adam",
    [ENG_OP_SINKHORN] = "sinkhorn",
};
static const char *const g_backend_names[ENG_BACKEND_COUNT] = {
    [ENG_CPU] = "cpu", [ENG_CUDA] = "cuda"};
static const char *const g_formulas[ENG_GATE_FORMULA_COUNT] = {
    [ENG_GATE_COPYSIGN] = "copysign", [ENG_GATE_SIGN] = "sign", [ENG_GATE_PLAIN] = "plain"};

static const EngKernel *g_by_op[ENG_OP_COUNT][MAX_PER_OP];
static int g_counts[ENG_OP_COUNT];
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

static void join(void)
{
    for (size_t b = 0; b < sizeof g_backends / sizeof *g_backends; b++) {
        for (const EngKernel *const *k = g_backends[b]; *k; k++) {
            EngOp op = (*k)->op;
            if (g_counts[op] < MAX_PER_OP) g_by_op[op][g_counts[op]++] = *k;
        }
    }
}

const EngKernel *const *eng_kernels(EngOp op, int *n)
{
    *n = 0;
    if ((unsigned)op >= ENG_OP_COUNT) return NULL;
    pthread_once(&g_once, join);
    *n = g_counts[op];
    return g_by_op[op];
}

/* Where a kernel of this operation and name stands, -1: nowhere. */
static int place_of(const EngKernel *kernel)
{
    int n;
    const EngKernel *const *kernels = eng_kernels(kernel->op, &n);
    for (int i = 0; i < n; i++)
        if (!strcmp(kernels[i]->name, kernel->name)) return i;
    return -1;
}

EngStatus eng_kernels_add(const EngKernel *const *kernels, bool replace, EngErr *err)
{
    int added[ENG_OP_COUNT] = {0};
    for (const EngKernel *const *k = kernels; *k; k++) {
        if ((unsigned)(*k)->op >= ENG_OP_COUNT)
            return ENG_FAIL(err, ENG_BAD_DATA, "kernel %s is of an unknown operation (%d)",
                            (*k)->name, (int)(*k)->op);
        bool known = place_of(*k) >= 0;
        if (known && !replace)
            return ENG_FAIL(err, ENG_USAGE, "%s has a kernel %s already: give yours another name",
                            g_ops[(*k)->op], (*k)->name);
        if (!known && g_counts[(*k)->op] + ++added[(*k)->op] > MAX_PER_OP)
            return ENG_FAIL(err, ENG_USAGE, "%s has no room for kernel %s: %d are the most",
                            g_ops[(*k)->op], (*k)->name, MAX_PER_OP);
    }
    for (const EngKernel *const *k = kernels; *k; k++) {
        int place = place_of(*k);
        if (place < 0) place = g_counts[(*k)->op]++;
        g_by_op[(*k)->op][place] = *k;
    }
    return ENG_OK;
}

const EngKernel *eng_kernel_find(EngOp op, const char *name)
{
    int n;
    const EngKernel *const *kernels = eng_kernels(op, &n);
    for (int i = 0; i < n; i++)
        if (eng_kernel_is(kernels[i], name)) return kernels[i];
    return NULL;
}

/* ---- settings of a variant: "portable@group=24@ahead=2" -----------------------------------------
 */

bool eng_kernel_is(const EngKernel *kernel, const char *variant)
{
    size_t n = strcspn(variant, "@");
    return strlen(kernel->name) == n && !memcmp(kernel->name, variant, n);
}

static int count_tunables(const EngKernel *kernel)
{
    int n = 0;
    while (kernel->tunables && n < ENG_MAX_TUNABLES && kernel->tunables[n].name) n++;
    return n;
}

/* One "name=value"; `text` has the variant for messages. */
static EngStatus take_setting(const EngKernel *kernel, const char *variant, const char *setting,
                              int *tuned, EngErr *err)
{
    char name[ENG_VARIANT_BYTES];
    const char *equals = strchr(setting, '=');
    int n = count_tunables(kernel), which = 0;
    int64_t value;
    if (!equals)
        return ENG_FAIL(err, ENG_USAGE, "variant %s: '%s' is not parameter=value", variant,
                        setting);
    snprintf(name, sizeof name, "%.*s", (int)(equals - setting), setting);
    while (which < n && strcmp(kernel->tunables[which].name, name)) which++;
    if (which == n) {
        const char *names[ENG_MAX_TUNABLES];
        for (int i = 0; i < n; i++) names[i] = kernel->tunables[i].name;
        const char *near = eng_nearest(name, names, (size_t)n);
        return ENG_FAIL(err, ENG_USAGE, "variant %s: %s has no parameter '%s'%s%s%s", variant,
                        kernel->name, name, near ? "; did you mean '" : "", near ? near : "",
                        near ? "'?" : "");
    }
    const EngTunable *t = &kernel->tunables[which];
    if (tuned[which])
        return ENG_FAIL(err, ENG_USAGE, "variant %s: %s is given twice", variant, name);
    if (!eng_parse_i64(equals + 1, &value) || value < t->min || value > t->max)
        return ENG_FAIL(err, ENG_USAGE, "variant %s: %s is not a whole number from %d to %d",
                        variant, name, t->min, t->max);
    tuned[which] = (int)value;
    return ENG_OK;
}

EngStatus eng_kernel_settings(const EngKernel *kernel, const char *variant,
                              int tuned[ENG_MAX_TUNABLES], EngErr *err)
{
    EngStatus status = ENG_OK;
    memset(tuned, 0, ENG_MAX_TUNABLES * sizeof *tuned);
    for (const char *at = strchr(variant, '@'); at && !status; at = strchr(at + 1, '@')) {
        char setting[ENG_VARIANT_BYTES];
        size_t n = strcspn(at + 1, "@");
        if (n >= sizeof setting)
            return ENG_FAIL(err, ENG_USAGE, "variant %.40s...: a setting is too long", variant);
        snprintf(setting, sizeof setting, "%.*s", (int)n, at + 1);
        status = take_setting(kernel, variant, setting, tuned, err);
    }
    return status;
}

EngStatus eng_kernel_variant(const EngKernel *kernel, const int tuned[ENG_MAX_TUNABLES], char *out,
                             size_t size, EngErr *err)
{
    int n = count_tunables(kernel);
    size_t used = (size_t)snprintf(out, size, "%s", kernel->name);
    for (int i = 0; i < n && used < size; i++)
        if (tuned[i] && tuned[i] != kernel->tunables[i].def)
            used += (size_t)snprintf(out + used, size - used, "@%s=%d", kernel->tunables[i].name,
                                     tuned[i]);
    if (used < size) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE, "variant %.40s...: longer than %zu characters", out, size - 1);
}

static int parse(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

const char *eng_op_name(EngOp op)
{
    return (unsigned)op < ENG_OP_COUNT ? g_ops[op] : NULL;
}

int eng_op_parse(const char *name)
{
    return parse(g_ops, ENG_OP_COUNT, name);
}

bool eng_backend_present(EngBackend backend)
{
    return backend == ENG_CPU || (backend == ENG_CUDA && !eng_cuda_device(NULL));
}

const char *eng_backend_name(EngBackend backend)
{
    return (unsigned)backend < ENG_BACKEND_COUNT ? g_backend_names[backend] : NULL;
}

const char *eng_gate_formula_name(EngGateFormula formula)
{
    return (unsigned)formula < ENG_GATE_FORMULA_COUNT ? g_formulas[formula] : NULL;
}

int eng_gate_formula_parse(const char *name)
{
    return parse(g_formulas, ENG_GATE_FORMULA_COUNT, name);
}
