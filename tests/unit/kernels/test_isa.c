/* Instruction sets and the variants that need them, against what the operating system lists: a
 * variant that refuses a machine which has its instructions would be left out of every other test.
 */
#include "kernels_test.h"

#include "kernels/cpu/isa.h"

typedef struct Needs {
    EngOp op;
    const char *name;
    unsigned isa;
} Needs;

enum { FULL_512 = ENG_ISA_AVX2 | ENG_ISA_AVX512 };

static const Needs g_needs[] = {
    {ENG_OP_HASH, "avx2", ENG_ISA_AVX2},
    {ENG_OP_HASH, "avx512", FULL_512},
    {ENG_OP_HASH, "avx512_ifma", FULL_512 | ENG_ISA_IFMA},
    {ENG_OP_GATHER, "avx2", ENG_ISA_AVX2},
    {ENG_OP_GATHER, "avx512", FULL_512},
    {ENG_OP_GATHER, "avx512_vbmi", FULL_512 | ENG_ISA_VBMI},
    {ENG_OP_GATHER, "avx512_vbmi_cached", FULL_512 | ENG_ISA_VBMI},
    {ENG_OP_PROJECT, "avx2", ENG_ISA_AVX2},
    {ENG_OP_PROJECT, "avx512", FULL_512 | ENG_ISA_VBMI | ENG_ISA_BF16},
    {ENG_OP_GATE, "avx2", ENG_ISA_AVX2},
    {ENG_OP_GATE, "avx512", FULL_512 | ENG_ISA_BF16},
    {ENG_OP_LOOKUP, "avx2", ENG_ISA_AVX2},
    {ENG_OP_LOOKUP, "avx512", FULL_512 | ENG_ISA_VBMI | ENG_ISA_BF16},
    {ENG_OP_LOOKUP, "avx512_fused", FULL_512 | ENG_ISA_VBMI | ENG_ISA_BF16},
};

static char g_flags[8192]; /* of the first processor, a space around each; "": not x86 */

static int read_flags(void **state)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    (void)state;
    assert_non_null(file);
    while (fgets(g_flags, sizeof g_flags, file) && strncmp(g_flags, "flags", 5)) g_flags[0] = 0;
    fclose(file);
    if (g_flags[0]) g_flags[strcspn(g_flags, "\n")] = ' ';
    return 0;
}

/* All of a list that ends with NULL. */
static bool has(const char *const *flags)
{
    for (; *flags; flags++) {
        char word[32];
        snprintf(word, sizeof word, " %s ", *flags);
        if (!strstr(g_flags, word)) return false;
    }
    return true;
}

static unsigned listed(void)
{
    static const char *const avx2[] = {"avx2", "fma", "f16c", "bmi2", NULL};
    static const char *const avx512[] = {"avx512f", "avx512bw", "avx512vl", "avx512dq", NULL};
    static const char *const vbmi[] = {"avx512vbmi", NULL}, *const vnni[] = {"avx512_vnni", NULL};
    static const char *const bf16[] = {"avx512_bf16", NULL}, *const ifma[] = {"avx512ifma", NULL};
    unsigned isa = 0;
    if (has(avx2)) isa |= ENG_ISA_AVX2;
    if (!has(avx2) || !has(avx512)) return isa;
    isa |= ENG_ISA_AVX512;
    if (has(vbmi)) isa |= ENG_ISA_VBMI;
    if (has(vnni)) isa |= ENG_ISA_VNNI;
    if (has(bf16)) isa |= ENG_ISA_BF16;
    if (has(ifma)) isa |= ENG_ISA_IFMA;
    return isa;
}

static void test_detection(void **state)
{
    (void)state;
    assert_int_equal(eng_isa_present(), listed());
}

/* fp8 rows and weights at small shapes that every variant takes. */
static EngProblem plain_problem(EngOp op)
{
    static uint8_t bytes[64 * 64];
    static EngAddress address = {
        .n_layers = 1, .min_order = 2, .max_order = 2, .heads = 2, .n_columns = 2};
    const EngTable table = {ENG_ROW_FP8, 32, 64, bytes, bytes};
    EngProblem p = {.op = op, .threads = 1};
    if (op == ENG_OP_HASH) p.u.hash = (EngHashProblem){&address, 4};
    if (op == ENG_OP_GATHER) p.u.gather = (EngGatherProblem){table, 2, 4, ENG_BF16};
    if (op == ENG_OP_PROJECT)
        p.u.project = (EngProjectProblem){4, 64, 64, ENG_FP8, ENG_FP8, ENG_BF16, bytes, bytes};
    if (op == ENG_OP_GATE)
        p.u.gate =
            (EngGateProblem){4, 1, 64, ENG_GATE_COPYSIGN, 1e-6f, (void *)bytes, (void *)bytes};
    if (op == ENG_OP_LOOKUP)
        p.u.lookup = (EngLookupProblem){table, 2, 4, 64, ENG_FP8, ENG_BF16, bytes, bytes};
    return p;
}

static const Needs *needs_of(const EngKernel *kernel)
{
    for (int i = 0; i < LENGTH_OF(g_needs); i++)
        if (g_needs[i].op == kernel->op && !strcmp(g_needs[i].name, kernel->name))
            return &g_needs[i];
    return NULL;
}

/* What runs where: nothing but missing instructions keeps a variant from a plain problem. */
static void test_variants(void **state)
{
    int found = 0;
    (void)state;
    for (int op = 0; op < ENG_OP_COUNT; op++) {
        int n;
        const EngKernel *const *kernels = cpu_kernels((EngOp)op, &n);
        EngProblem problem = plain_problem((EngOp)op);
        for (int k = 0; k < n; k++) {
            const Needs *needs = needs_of(kernels[k]);
            EngErr why = {0};
            found += needs != NULL;
            if (!needs && !strncmp(kernels[k]->name, "avx", 3))
                fail_msg("%s of %s: what it needs is not said here", kernels[k]->name,
                         eng_op_name((EngOp)op));
            if (!needs) continue;
            bool refused = kernels[k]->supports(&problem, &why) != ENG_OK;
            if (refused != ((needs->isa & ~listed()) != 0))
                fail_msg("%s of %s: %s", kernels[k]->name, eng_op_name((EngOp)op),
                         refused ? why.text : "runs without its instructions");
        }
    }
    assert_int_equal(found, ENG_X86 ? LENGTH_OF(g_needs) : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detection),
        cmocka_unit_test(test_variants),
    };
    return cmocka_run_group_tests(tests, read_flags, NULL);
}
