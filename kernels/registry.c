/* The registry: the arrays of all backends joined and sorted by operation; see engram/kernels.h.
 * A new backend needs its array in `g_backends`, a new variant none of this.
 */
#include <engram/kernels.h>

#include "kernels/cpu/cpu.h"

#include <pthread.h>
#include <string.h>

#define MAX_PER_OP 128

static const EngKernel *const *const g_backends[] = {eng_cpu_kernels};

static const char *const g_ops[ENG_OP_COUNT] = {
    [ENG_OP_HASH] = "hash", [ENG_OP_GATHER] = "gather", [ENG_OP_PROJECT] = "project",
    [ENG_OP_GATE] = "gate", [ENG_OP_CONV] = "conv",
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

const EngKernel *eng_kernel_find(EngOp op, const char *name)
{
    int n;
    const EngKernel *const *kernels = eng_kernels(op, &n);
    for (int i = 0; i < n; i++)
        if (!strcmp(kernels[i]->name, name)) return kernels[i];
    return NULL;
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
