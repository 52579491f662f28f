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
#include "base/rng.h"
#include "bench/backbone/train_parts.h"

#define PER_TENSOR 3 /* elements moved */

typedef struct Case {
    const char *name;
    const char *fields; /* "name=value ..": on top of the tiny rung */
} Case;

static const Case cases[] = {
    {"dense", "experts=0 top_k=0"},
    {"no shared experts", "shared_experts=0"},
    {"wider shared experts", "shared_extra=5"},
    {"plain MoE", ""},
    {"balance loss", "balance_loss=0.3"},
    {"route scale, other top_k", "route_scale=2.5 top_k=3"},
    {"grouped queries", "heads=4 kv_heads=2 head_dim=6"},
    {"tied head", "tied_head=true"},
    {"two lanes", "threads=2 engram_at=1"},
    {"two streams", "streams=2 sinkhorn_iters=1"},
    {"four streams, V4.1", "streams=4 engram_at=0,1 sinkhorn_iters=5"},
    {"five streams, many rounds", "streams=5 sinkhorn_iters=64"},
    {"one stream, V4.1", "engram_at=1"},
    {"demo", "engram_at=0 gate=sign conv_kernel=4 conv_random=true streams=3 gate_eps=1e-6"},
    {"conv, one stream", "engram_at=1 conv_kernel=3 conv_random=true"},
    {"plain gate", "engram_at=1 gate=plain streams=2"},
    {"no gate", "engram_at=1 gate_off=true streams=2"},
    {"no gate, conv", "engram_at=1 gate_off=true conv_kernel=4 conv_random=true"},
    {"one fusion", "engram_at=0,1 fusion=read streams=3"},
    {"one fusion, one stream, conv", "engram_at=1 fusion=read conv_kernel=4 conv_random=true"},
    {"over-encoding", "engram_at=0 fusion=input"},
    {"over-encoding, streams", "engram_at=0 fusion=input streams=2 tied_head=true"},
    {"4-grams, more heads", "engram_at=1 max_order=4 engram_heads=2 row_dims=3"},
    {"size-1 table", "engram_at=1 rows=one"},
    {"shuffled rows", "engram_at=1 rows=shuffled"},
};

static EngTrainConfig configure(const char *fields)
{
    EngTrainConfig config;
    EngErr err = {0};
    char copy[256], *rest = copy;
    assert_int_equal(eng_train_rung("tiny", &config, &err), ENG_OK);
    snprintf(copy, sizeof copy, "%s", fields);
    for (char *one = strtok_r(copy, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(one, '=');
        *value++ = 0;
        if (eng_train_set(&config, one, value, &err)) fail_msg("%s", err.text);
    }
    return config;
}

static EngTrainer *make(const EngTrainConfig *config)
{
    EngTrainer *t;
    EngErr err = {0};
    EngRng rng;
    if (eng_trainer_create(config, &t, &err)) fail_msg("%s", err.text);
    eng_rng_seed(&rng, 5);
    for (int i = 0; i < t->tensors.n; i++) { /* ones and zeros would hide mistakes */
        const EngTensor *tensor = &t->tensors.list[i];
        double spread = tensor->group == ENG_GROUP_TABLE ? 1 : 0.2;
        for (int64_t k = 0; k < tensor->rows * tensor->columns; k++)
            t->values[tensor->at + k] += spread * eng_rng_normal(&rng);
    }
    for (int i = 0; i < config->model.layers * config->model.experts; i++)
        t->bias[i] = 0.05 * eng_rng_normal(&rng);
    eng_trainer_refresh(t);
    return t;
}

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

static void check_element(EngTrainer *t, const int32_t *ids, const Case *c, const EngTensor *tensor,
                          int64_t element, double gradient)
{
    double seen = difference(t, ids, tensor->at + element);
    char name[48];
    eng_tensor_name(tensor, name, sizeof name);
    if (fabs(seen - gradient) > 1e-6 * fmax(fabs(seen), fabs(gradient)) + 2e-9)
        fail_msg("%s: %s[%ld]: gradient %.12g, difference %.12g", c->name, name, (long)element,
                 gradient, seen);
}

static void check_case(const Case *c)
{
    EngTrainConfig config = configure(c->fields);
    config.batch_tokens = 2 * config.seq_len;
    EngTrainer *t = make(&config);
    EngRng rng;
    EngErr err = {0};
    int64_t n = config.batch_tokens / config.seq_len * (config.seq_len + 1);
    int32_t ids[256];
    eng_rng_seed(&rng, 9);
    for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)eng_rng_below(&rng, 64);
    assert_true(n <= 256);
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
        for (int k = 0; k < PER_TENSOR; k++) {
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
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
