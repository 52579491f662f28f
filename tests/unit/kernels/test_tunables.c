/* Settings change how a variant runs and never what it computes: every combination at its limits
 * gives the plain variant's output, bit by bit, on odd shapes. */
#include "kernels_test.h"

#include "kernels/address/address.h"

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
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATHER, &n);
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

/* ---- hash and gate ---- */

/* Runs with one setting into out (filled with a pattern before). */
static void run_tuned(const EngKernel *kernel, EngProblem problem, int value, const EngArgs *args,
                      void *out, size_t bytes)
{
    problem.tuned[0] = value;
    memset(out, 0xaa, bytes);
    assert_true(run_kernel(kernel, &problem, args));
}

/* The setting's limits, some between, and none; against the plain variant. */
static void compare_settings(EngOp op, const char *setting, EngProblem problem, const EngArgs *args,
                             void *out, size_t bytes)
{
    int n, tuned = 0;
    const EngKernel *const *kernels = cpu_kernels(op, &n);
    uint8_t *plain = malloc(bytes);
    assert_non_null(plain);
    for (int k = 0; k < n; k++) {
        const EngTunable *t = kernels[k]->tunables;
        if (!t || kernels[k]->supports(&problem, &(EngErr){0})) continue;
        assert_string_equal(t->name, setting);
        const int values[] = {t->min, t->min + 1, t->max / 3, t->max - 1, t->max};
        run_tuned(kernels[k], problem, 0, args, out, bytes);
        memcpy(plain, out, bytes);
        for (int i = 0; i < 5; i++, tuned++) {
            run_tuned(kernels[k], problem, values[i], args, out, bytes);
            if (memcmp(plain, out, bytes))
                fail_msg("%s@%s=%d differs", kernels[k]->name, setting, values[i]);
        }
    }
    assert_true(tuned || op != ENG_OP_HASH); /* its portable variant has the setting */
    free(plain);
}

static void test_hash(void **unused)
{
    enum { TOKENS = 1003, ROWS_OUT = TOKENS * 6 };
    static int32_t tokens[TOKENS];
    static int64_t rows[ROWS_OUT];
    static const int64_t starts[] = {0, 1, 2, 130, 131, 900, TOKENS};
    (void)unused;
    EngAddressSpec spec = {.vocab = 5000,
                           .min_order = 2,
                           .max_order = 4,
                           .heads = 2,
                           .start = 997,
                           .n_layers = 1,
                           .layer_ids = {1}};
    EngAddress address;
    EngErr err = {0};
    if (eng_address_build(&spec, &address, &err)) fail_msg("%s", err.text);
    unsigned x = 7;
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = i % 97 == 5 ? ENG_TOKEN_DEAD : (int32_t)((x = x * 69069 + 1) >> 8) % 5000;
    EngProblem problem = {.op = ENG_OP_HASH, .threads = 2, .u.hash = {&address, TOKENS}};
    EngArgs args = {.u.hash = {.tokens = tokens,
                               .n_tokens = TOKENS,
                               .n_live = TOKENS - 3,
                               .starts = starts,
                               .n_seqs = 6,
                               .rows = rows}};
    compare_settings(ENG_OP_HASH, "block", problem, &args, rows, sizeof rows);
}

static void test_gate(void **unused)
{
    enum { TOKENS = 3, STREAMS = 4, HIDDEN = 328 };
    static uint16_t in[TOKENS * STREAMS * HIDDEN], out[TOKENS * STREAMS * HIDDEN];
    static uint16_t kv[TOKENS * (STREAMS + 1) * HIDDEN], q[STREAMS * HIDDEN], w[STREAMS * HIDDEN];
    EngRng rng;
    (void)unused;
    eng_rng_seed(&rng, 3);
    fill_bf16(&rng, in, LENGTH_OF(in), 1);
    fill_bf16(&rng, kv, LENGTH_OF(kv), 1);
    fill_bf16(&rng, q, LENGTH_OF(q), 1);
    fill_bf16(&rng, w, LENGTH_OF(w), 1);
    EngProblem problem = {.op = ENG_OP_GATE,
                          .threads = 1,
                          .u.gate = {.tokens = TOKENS,
                                     .streams = STREAMS,
                                     .hidden = HIDDEN,
                                     .eps = 1e-6f,
                                     .q_weight = q,
                                     .k_weight = w}};
    EngArgs args = {.u.gate = {.streams_in = in, .streams_out = out, .kv = kv}};
    compare_settings(ENG_OP_GATE, "fetch", problem, &args, out, sizeof out);
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
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_declarations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
