/* Settings change how a variant runs and never what it computes: every combination at its limits
 * gives the plain variant's output, bit by bit, on odd shapes. */
#include "kernels_test.h"

#include <stdlib.h>

enum { DIMS = 64, ROWS = 97, COLUMNS = 5, MAX_TOKENS = 61 };

static uint8_t g_values[ROWS * DIMS], g_scales[ROWS * DIMS / 32];
static int64_t g_rows[MAX_TOKENS * COLUMNS];
static uint16_t g_plain[MAX_TOKENS * COLUMNS * DIMS], g_out[MAX_TOKENS * COLUMNS * DIMS];

static void fill(void)
{
    unsigned x = 1;
    for (size_t i = 0; i < sizeof g_values; i++) g_values[i] = (uint8_t)((x = x * 69069 + 1) >> 24);
    for (size_t i = 0; i < sizeof g_values; i++)
        if ((g_values[i] & 0x7f) == 0x7f) g_values[i] = 0x7e; /* no NaN */
    for (size_t i = 0; i < sizeof g_scales; i++) g_scales[i] = (uint8_t)(120 + i % 16);
    for (size_t i = 0; i < sizeof g_rows / sizeof *g_rows; i++)
        g_rows[i] = (int64_t)((x = x * 69069 + 1) >> 8) % ROWS;
}

static void gather(const EngKernel *kernel, int64_t tokens, int threads, int burst, int ahead,
                   uint16_t *out)
{
    EngProblem problem = {.op = ENG_OP_GATHER,
                          .threads = threads,
                          .tuned = {burst, ahead},
                          .u.gather = {.table = {.format = ENG_ROW_FP8,
                                                 .row_dims = DIMS,
                                                 .rows = ROWS,
                                                 .values = g_values,
                                                 .scales = g_scales},
                                       .columns = COLUMNS,
                                       .tokens = tokens,
                                       .out = ENG_BF16}};
    EngArgs args = {.u.gather = {.rows = g_rows, .row_stride = COLUMNS, .out = out}};
    EngErr err = {0};
    void *state = NULL;
    if (kernel->create) assert_int_equal(kernel->create(&problem, &state, &err), ENG_OK);
    assert_int_equal(kernel->run(state, &problem, &args, &err), ENG_OK);
    if (kernel->destroy) kernel->destroy(state);
}

static void test_gather(void **unused)
{
    (void)unused;
    static const int64_t tokens[] = {1, 2, 13, MAX_TOKENS};
    int n, tuned = 0;
    const EngKernel *const *kernels = eng_kernels(ENG_OP_GATHER, &n);
    fill();
    for (int k = 0; k < n; k++) {
        const EngTunable *t = kernels[k]->tunables;
        EngProblem problem = {.op = ENG_OP_GATHER,
                              .threads = 1,
                              .u.gather = {.table = {.format = ENG_ROW_FP8, .row_dims = DIMS},
                                           .columns = COLUMNS,
                                           .tokens = 1,
                                           .out = ENG_BF16}};
        if (!t || kernels[k]->supports(&problem, &(EngErr){0})) continue;
        tuned++;
        const int bursts[] = {t[0].min, 3, 12, t[0].max}, aheads[] = {0, t[1].min, 7, t[1].max};
        for (int i = 0; i < 4 * 16 * 2; i++) {
            int64_t m = tokens[i / 32];
            int burst = bursts[i / 8 % 4], ahead = aheads[i / 2 % 4], threads = 1 + i % 2;
            memset(g_plain, 0xaa, sizeof g_plain);
            memset(g_out, 0xaa, sizeof g_out); /* nothing may be written behind the end either */
            gather(kernels[k], m, threads, 0, 0, g_plain);
            gather(kernels[k], m, threads, burst, ahead, g_out);
            if (memcmp(g_plain, g_out, sizeof g_out))
                fail_msg("%s@burst=%d@ahead=%d differs at %lld tokens, %d threads",
                         kernels[k]->name, burst, ahead, (long long)m, threads);
        }
    }
    assert_true(tuned >= 1);
}

/* What a search would try must be allowed, and names must be usable in a variant's name. */
static void test_declarations(void **unused)
{
    (void)unused;
    for (int op = 0; op < ENG_OP_COUNT; op++) {
        int n;
        const EngKernel *const *kernels = eng_kernels((EngOp)op, &n);
        for (int k = 0; k < n; k++) {
            const EngTunable *t = kernels[k]->tunables;
            for (int i = 0; t && t[i].name; i++) {
                assert_true(i < ENG_MAX_TUNABLES);
                assert_true(t[i].min >= 1 && t[i].max >= t[i].min && t[i].values && t[i].help);
                assert_true(strcspn(t[i].name, "@=, ;") == strlen(t[i].name));
                for (const char *at = t[i].values; *at; at += strcspn(at, ","), at += *at == ',') {
                    long value = strtol(at, NULL, 10);
                    assert_true(value >= t[i].min && value <= t[i].max);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_declarations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
