/* Loss and gradients of every option combination against known answers of an independent PyTorch
 * implementation in double precision: tests/data/train_twin.txt, written by `tests/oracle/twin.py
 * check`, which compares every element. Here: loss, and of each gradient its norm and a sum in
 * which every element counts differently, to 1e-4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/mem.h"
#include "tests/unit/backbone/train_cases.h"

#define ANSWERS ENG_SOURCE_DIR "/tests/data/train_twin.txt"
#define LIMIT   1e-4

/* Answers of one case, in any order of tensors; a loss has no second number. */
typedef struct Answer {
    char name[64], tensor[64];
    double a, b;
} Answer;

static Answer *g_answers;
static int g_n;

static int read_answers(void **state)
{
    (void)state;
    FILE *file = fopen(ANSWERS, "r");
    char line[512];
    if (!file) return 1;
    g_answers = calloc(4096, sizeof *g_answers);
    while (g_n < 4096 && fgets(line, sizeof line, file)) {
        Answer *answer = &g_answers[g_n];
        char a[64] = "0", b[64] = "0";
        if (*line == '#' ||
            sscanf(line, "%63s %63s %63s %63s", answer->name, answer->tensor, a, b) < 3)
            continue;
        answer->a = strtod(a, NULL), answer->b = strtod(b, NULL);
        g_n++;
    }
    fclose(file);
    return 0;
}

static int free_answers(void **state)
{
    (void)state;
    free(g_answers);
    return 0;
}

static const Answer *answer_of(const char *name, const char *tensor)
{
    for (int i = 0; i < g_n; i++)
        if (!strcmp(g_answers[i].name, name) && !strcmp(g_answers[i].tensor, tensor))
            return &g_answers[i];
    fail_msg("%s: no answer for %s", name, tensor);
    return NULL;
}

static void check_tensor(const char *name, const char *tensor, const float *gradient, int64_t n)
{
    const Answer *want = answer_of(name, tensor);
    double squares = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t mixed = ((uint64_t)i * 2654435761u) & 0xffffffffu;
        squares += (double)gradient[i] * (double)gradient[i];
        sum += (double)gradient[i] * ((double)mixed / 2147483648.0 - 1);
    }
    double limit = LIMIT * want->a + 1e-7;
    if (!(fabs(sqrt(squares) - want->a) <= limit) || !(fabs(sum - want->b) <= limit))
        fail_msg("%s: gradient of %s: norm %.9g, want %.9g; sum %.9g, want %.9g", name, tensor,
                 sqrt(squares), want->a, sum, want->b);
}

static void check_case(const TrainCase *c)
{
    EngTrainConfig config;
    EngTrainer *t;
    EngErr err = {0};
    int32_t ids[CASE_IDS];
    double loss;
    if (case_config(c, &config, &err) || eng_trainer_create(&config, &t, &err))
        fail_msg("%s: %s", c->name, err.text);
    case_values(t);
    case_ids(ids);
    assert_int_equal(eng_trainer_gradient(t, ids, &loss, &err), ENG_OK);
    double want = answer_of(c->name, "loss")->a;
    if (!(fabs(loss / want - 1) <= LIMIT))
        fail_msg("%s: loss %.9g, want %.9g", c->name, loss, want);
    EngTrainTensor tensor;
    int module = 0;
    for (int i = 0; eng_trainer_tensor(t, i, &tensor); i++) {
        int64_t n = tensor.rows * tensor.columns;
        float *table = NULL;
        if (!tensor.gradient) {
            table = eng_alloc_array((size_t)n, sizeof *table);
            assert_int_equal(eng_trainer_table_gradient(t, module++, table, &err), ENG_OK);
        }
        check_tensor(c->name, tensor.name, table ? table : tensor.gradient, n);
        eng_free(table);
    }
    eng_trainer_destroy(t);
}

static void test_every_case(void **state)
{
    (void)state;
    for (int i = 0; i < N_TRAIN_CASES; i++) check_case(&train_cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_case)};
    return cmocka_run_group_tests(tests, read_answers, free_answers);
}
