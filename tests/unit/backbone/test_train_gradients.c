/* Every gradient of training against central differences, for every option that an arm may have.
 * This test compiles the trainer's sources with double as its number type (tests/CMakeLists.txt),
 * so that differences hold to 1e-6; the choice of experts is kept while a parameter moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/unit/backbone/train_cases.h"

#define PER_TENSOR 2 /* elements moved; 1 of an expert's */

static double objective(EngTrainer *t, const int32_t *ids)
{
    const EngTrainConfig *c = &t->config;
    double loss, balance = 0;
    EngErr err = {0};
    if (eng_trainer_gradient(t, ids, &loss, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < c->model.threads; i++) balance += t->lanes[i].balance;
    return loss + c->balance_loss * balance * (double)c->seq_len / (double)c->batch_tokens;
}

static double moved(EngTrainer *t, const int32_t *ids, int64_t at, double by)
{
    double was = t->values[at];
    t->values[at] = was + by;
    eng_trainer_refresh(t);
    double seen = objective(t, ids);
    t->values[at] = was;
    eng_trainer_refresh(t);
    return seen;
}

/* Of fourth order: the root in the gate bends sharply. */
static double difference(EngTrainer *t, const int32_t *ids, int64_t at)
{
    double h = 1e-5;
    double near = moved(t, ids, at, h) - moved(t, ids, at, -h);
    double far = moved(t, ids, at, 2 * h) - moved(t, ids, at, -2 * h);
    return (8 * near - far) / (12 * h);
}

static void check_element(EngTrainer *t, const int32_t *ids, const TrainCase *c,
                          const EngTensor *tensor, int64_t element, double gradient)
{
    double seen = difference(t, ids, tensor->at + element);
    char name[48];
    eng_tensor_name(tensor, name, sizeof name);
    if (!(fabs(seen - gradient) <= 1e-6 * fmax(fabs(seen), fabs(gradient)) + 2e-9))
        fail_msg("%s: %s[%ld]: gradient %.12g, difference %.12g", c->name, name, (long)element,
                 gradient, seen);
}

static void check_case(const TrainCase *c)
{
    EngTrainConfig config;
    EngTrainer *t;
    EngRng rng;
    EngErr err = {0};
    int32_t ids[CASE_IDS];
    if (case_config(c, &config, &err) || eng_trainer_create(&config, &t, &err))
        fail_msg("%s: %s", c->name, err.text);
    case_values(t);
    case_ids(ids);
    eng_rng_seed(&rng, 3);
    objective(t, ids);
    EngReal *gradients = eng_alloc_array((size_t)t->tensors.all, sizeof *gradients);
    memcpy(gradients, t->lanes[0].gradient, (size_t)t->tensors.dense * sizeof *gradients);
    for (int m = 0, i = 0; i < t->tensors.n; i++)
        if (t->tensors.list[i].group == ENG_GROUP_TABLE)
            assert_int_equal(
                eng_trainer_table_gradient(t, m++, gradients + t->tensors.list[i].at, &err),
                ENG_OK);
    for (int i = 0; i < config.model.threads; i++) t->lanes[i].frozen_choice = true;
    for (int i = 0; i < t->tensors.n; i++) {
        const EngTensor *tensor = &t->tensors.list[i];
        for (int k = 0; k < (tensor->expert ? 1 : PER_TENSOR); k++) {
            int64_t at = (int64_t)eng_rng_below(&rng, (uint64_t)(tensor->rows * tensor->columns));
            if (tensor->group == ENG_GROUP_TABLE) /* a row that was read */
                at =
                    t->batch_rows[(int64_t)eng_rng_below(&rng, (uint64_t)config.batch_tokens) *
                                      t->address.n_layers * t->address.n_columns +
                                  tensor->layer * t->address.n_columns + k % t->address.n_columns] *
                        tensor->columns +
                    at % tensor->columns;
            check_element(t, ids, c, tensor, at, gradients[tensor->at + at]);
        }
    }
    eng_free(gradients);
    eng_trainer_destroy(t);
}

static void test_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < N_TRAIN_CASES; i++) check_case(&train_cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
