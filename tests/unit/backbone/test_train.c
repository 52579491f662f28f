/* Trained arms: the forward pass against the inference one, determinism, what arms share, held-out
 * loss, divergence, learning, faults. */
#include "tests/unit/backbone/train_test.h"

#include "bench/backbone/backbone.h"

/* ---- the same model as backbone.h's ---- */

static void copy_weights(const EngTrainer *t, EngBackbone *b)
{
    for (int i = 0; i < t->tensors.n; i++) {
        const EngTensor *tensor = &t->tensors.list[i];
        int64_t n;
        EngDtype dtype;
        void *to = eng_backbone_weight(b, (EngWeight)tensor->what, tensor->layer, tensor->expert,
                                       &n, &dtype);
        assert_int_equal(n, tensor->rows * tensor->columns);
        memcpy(to, t->values + tensor->at, (size_t)n * sizeof(float));
    }
    for (int l = 0; l < t->config.model.layers; l++) {
        int64_t n;
        EngDtype dtype;
        void *to = eng_backbone_weight(b, ENG_W_ROUTER_BIAS, l, 0, &n, &dtype);
        if (to) memcpy(to, t->bias + l * n, (size_t)n * sizeof(float));
    }
}

static void check_forward(const char *fields)
{
    EngTrainConfig config = tiny(fields);
    EngTrainer *t = new_trainer(&config);
    EngBackbone *b;
    EngErr err = {0};
    enum { TOKENS = 33 };
    run_until(t, 20 * config.batch_tokens);
    EngBackboneConfig c = config.model;
    c.max_tokens = c.max_len = config.seq_len, c.max_seqs = 1;
    if (eng_backbone_create(&c, &b, &err)) fail_msg("%s", err.text);
    copy_weights(t, b);
    const int32_t *ids = drawn_ids();
    float losses[TOKENS], *logits = eng_alloc_array((size_t)config.seq_len, 64 * sizeof *logits);
    double loss;
    int64_t n, starts[] = {0, config.seq_len};
    assert_int_equal(eng_trainer_evaluate(t, ids, TOKENS, NULL, losses, &loss, &n, &err), ENG_OK);
    assert_int_equal(n, 32);
    for (int s = 0; s < 2; s++) {
        EngBackboneStep step = {ids + s * config.seq_len, starts, NULL, 1};
        eng_backbone_truncate(b, 0, 0, &err);
        assert_int_equal(eng_backbone_forward(b, &step, true, logits, &err), ENG_OK);
        for (int64_t i = 0; i < config.seq_len; i++) {
            int64_t at = s * config.seq_len + i;
            double sum = 0;
            for (int v = 0; v < 64; v++) sum += exp((double)logits[i * 64 + v]);
            assert_true(fabs(log(sum) - (double)logits[i * 64 + ids[at + 1]] -
                             (double)losses[at + 1]) < 1e-4);
        }
    }
    assert_true(isnan(losses[0]));
    eng_free(logits);
    eng_backbone_destroy(b);
    eng_trainer_destroy(t);
}

static void test_forward_is_the_backbones(void **state)
{
    (void)state;
    check_forward("");
    check_forward("streams=4 shared_extra=3");
    check_forward("tied_head=true embed_scale=0.2 heads=4 kv_heads=2 head_dim=6");
    check_forward("experts=0 top_k=0");
}

/* ---- determinism ---- */

static void test_same_seed_same_bits(void **state)
{
    const char *const arms[] = {"engram_at=1", "engram_at=1 streams=2 threads=2",
                                "engram_at=0 conv_kernel=4 rule=muon rows=shuffled"};
    (void)state;
    for (size_t i = 0; i < sizeof arms / sizeof *arms; i++) {
        EngTrainConfig config = tiny(arms[i]);
        EngTrainer *a = new_trainer(&config), *b = new_trainer(&config);
        EngTrainResult first = run_until(a, 0), second = run_until(b, 0);
        assert_true(first.finished && !*first.failed);
        assert_true(first.last.loss == second.last.loss);
        assert_same_values(a, b);
        config.model.seed++;
        EngTrainer *c = new_trainer(&config);
        assert_true(run_until(c, 0).last.loss != first.last.loss);
        eng_trainer_destroy(a);
        eng_trainer_destroy(b);
        eng_trainer_destroy(c);
    }
}

static void test_lanes_agree(void **state)
{
    (void)state;
    EngTrainConfig one = tiny("engram_at=1 tokens=640"), two = one;
    two.model.threads = 3;
    EngTrainer *a = new_trainer(&one), *b = new_trainer(&two);
    assert_true(fabs(run_until(a, 0).last.loss - run_until(b, 0).last.loss) < 1e-4);
    eng_trainer_destroy(a);
    eng_trainer_destroy(b);
}

/* Arms with fewer experts and other tables start with the same of all that they share, and see the
 * same batches. */
static void test_arms_share_start_and_data(void **state)
{
    (void)state;
    EngTrainConfig base = tiny(""), arm = tiny("engram_at=1 experts=4 row_start=53");
    EngTrainer *a = new_trainer(&base), *b = new_trainer(&arm);
    EngTrainTensor x, y;
    int shared = 0;
    for (int i = 0; eng_trainer_tensor(b, i, &y); i++)
        for (int j = 0; eng_trainer_tensor(a, j, &x); j++) {
            if (strcmp(x.name, y.name) != 0) continue;
            shared++;
            for (int64_t r = 0; r < y.rows; r++)
                assert_memory_equal(x.values + r * x.columns, y.values + r * y.columns,
                                    (size_t)y.columns * sizeof *y.values);
        }
    assert_int_equal(shared, b->tensors.n - 4); /* kv, two gate weights, table */
    run_until(a, base.batch_tokens);
    run_until(b, base.batch_tokens);
    assert_memory_equal(a->batch, b->batch, (size_t)base.batch_tokens * 2 * sizeof *a->batch);
    eng_trainer_destroy(a);
    eng_trainer_destroy(b);
}

/* ---- held-out loss ---- */

typedef struct Seen {
    int64_t tokens[ENG_TV_COUNT], next[ENG_TV_COUNT];
    double gates;
} Seen;

static void see(void *context, int layer, EngTrainValue what, int64_t first, const EngReal *data,
                int64_t tokens, int64_t columns)
{
    Seen *seen = context;
    if (what == ENG_TV_GATE) {
        assert_int_equal(layer, 1);
        assert_int_equal(columns, 2);
        assert_int_equal(first, seen->next[what]);
        seen->next[what] = first + tokens;
        for (int64_t i = 0; i < tokens * columns; i++) seen->gates += (double)data[i];
    }
    seen->tokens[what] += tokens;
}

static void test_evaluation_changes_nothing(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("engram_at=1 streams=2 rows=shuffled");
    EngTrainer *a = new_trainer(&config), *b = new_trainer(&config);
    EngErr err = {0};
    Seen seen = {0};
    EngTrainEval eval = {.value = see, .context = &seen}, suppress = {.suppress = true};
    double loss, without;
    int64_t n;
    float losses[1000];
    run_until(a, 640);
    assert_int_equal(eng_trainer_evaluate(a, drawn_ids(), 1000, &eval, losses, &loss, &n, &err),
                     ENG_OK);
    assert_int_equal(n, 992);
    double sum = 0;
    for (int i = 1; i <= 992; i++) sum += (double)losses[i];
    assert_true(fabs(sum / 992 - loss) < 1e-6);
    assert_true(isnan(losses[993]));
    assert_int_equal(seen.tokens[ENG_TV_GATE], 992);
    assert_int_equal(seen.tokens[ENG_TV_STREAMS], 992 * 3);
    assert_true(seen.gates > 0 && seen.gates < 992 * 2);
    assert_int_equal(
        eng_trainer_evaluate(a, drawn_ids(), 1000, &suppress, NULL, &without, &n, &err), ENG_OK);
    assert_true(without != loss);
    run_until(a, 0);
    run_until(b, 0);
    assert_same_values(a, b);
    eng_trainer_destroy(a);
    eng_trainer_destroy(b);
}

/* Rows are shuffled within a batch of held-out tokens, however many lanes train. */
static void test_lanes_are_judged_alike(void **state)
{
    (void)state;
    EngTrainConfig one = tiny("engram_at=1 rows=shuffled"), three = one;
    three.model.threads = 3;
    EngTrainer *a = new_trainer(&one), *b = new_trainer(&three);
    EngErr err = {0};
    float want[1000], got[1000];
    double loss;
    int64_t n;
    assert_same_values(a, b);
    assert_int_equal(eng_trainer_evaluate(a, drawn_ids(), 1000, NULL, want, &loss, &n, &err),
                     ENG_OK);
    assert_int_equal(eng_trainer_evaluate(b, drawn_ids(), 1000, NULL, got, &loss, &n, &err),
                     ENG_OK);
    for (int i = 1; i <= n; i++) assert_true(fabsf(want[i] - got[i]) < 1e-4f);
    eng_trainer_destroy(a);
    eng_trainer_destroy(b);
}

/* A silenced memory is a memory whose values are all zero, wherever it enters. */
static void test_silence_is_zero_values(void **state)
{
    const char *const arms[] = {"engram_at=1 streams=2",
                                "engram_at=1 conv_kernel=4",
                                "engram_at=0,1 fusion=read",
                                "engram_at=0 fusion=input",
                                "engram_at=0 fusion=input kv_bias=true",
                                "engram_at=0 gate=sign conv_kernel=4 kv_bias=true"};
    (void)state;
    for (size_t i = 0; i < sizeof arms / sizeof *arms; i++) {
        EngTrainConfig config = tiny(arms[i]);
        EngTrainer *t = new_trainer(&config);
        EngTrainEval suppress = {.suppress = true};
        EngTrainTensor tensor;
        EngErr err = {0};
        double silent, zero, loss;
        int64_t n;
        run_until(t, 640);
        assert_int_equal(
            eng_trainer_evaluate(t, drawn_ids(), 500, &suppress, NULL, &silent, &n, &err), ENG_OK);
        assert_int_equal(eng_trainer_evaluate(t, drawn_ids(), 500, NULL, NULL, &loss, &n, &err),
                         ENG_OK);
        for (int k = 0; eng_trainer_tensor(t, k, &tensor); k++)
            if (strstr(tensor.name, ".kv"))
                memset(tensor.values, 0, (size_t)(tensor.rows * tensor.columns) * sizeof(EngReal));
        eng_trainer_refresh(t);
        assert_int_equal(eng_trainer_evaluate(t, drawn_ids(), 500, NULL, NULL, &zero, &n, &err),
                         ENG_OK);
        assert_true(fabs(silent - zero) < 1e-6);
        assert_true(fabs(silent - loss) > 1e-6);
        eng_trainer_destroy(t);
    }
}

static void test_logits_of_last_streams_give_the_loss(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("engram_at=1 streams=2");
    EngTrainer *t = new_trainer(&config);
    EngErr err = {0};
    double loss;
    int64_t n;
    float losses[17];
    EngReal logits[16 * 64];
    assert_int_equal(eng_trainer_evaluate(t, drawn_ids(), 17, NULL, losses, &loss, &n, &err),
                     ENG_OK);
    assert_int_equal(eng_trainer_logits(t, t->lanes[0].out_streams, 16, logits, &err), ENG_OK);
    for (int i = 0; i < 16; i++) {
        double sum = 0;
        for (int v = 0; v < 64; v++) sum += exp((double)logits[i * 64 + v]);
        assert_true(fabs(log(sum) - (double)logits[i * 64 + drawn_ids()[i + 1]] -
                         (double)losses[i + 1]) < 1e-4);
    }
    eng_trainer_destroy(t);
}

/* ---- bf16 products ---- */

static void check_bf16(const char *fields)
{
    EngTrainConfig wide = tiny(fields), narrow = wide;
    EngTrainer *a, *b;
    EngErr err = {0};
    int32_t ids[4 * 17];
    double loss[2];
    narrow.model.dtype = ENG_BF16;
    EngStatus status = eng_trainer_create(&narrow, &b, &err);
    if (status == ENG_UNSUPPORTED) {
        assert_non_null(strstr(err.text, "AVX-512"));
        return;
    }
    assert_int_equal(status, ENG_OK);
    a = new_trainer(&wide);
    memcpy(ids, drawn_ids(), sizeof ids);
    assert_int_equal(eng_trainer_gradient(a, ids, &loss[0], &err), ENG_OK);
    for (int i = 0; i < wide.model.threads; i++) { /* rounding may turn a choice of experts */
        b->lanes[i].frozen_choice = true;
        for (int l = 0; l < wide.model.layers; l++)
            memcpy(b->lanes[i].layers[l].choice, a->lanes[i].layers[l].choice,
                   (size_t)(a->lanes[i].tokens * wide.model.top_k) * sizeof(int32_t));
    }
    assert_int_equal(eng_trainer_gradient(b, ids, &loss[1], &err), ENG_OK);
    for (int i = 0; i < wide.model.threads; i++) b->lanes[i].frozen_choice = false;
    assert_true(fabs(loss[0] / loss[1] - 1) < 0.01 && loss[0] != loss[1]);
    EngTrainTensor x, y;
    for (int i = 0; eng_trainer_tensor(a, i, &x) && eng_trainer_tensor(b, i, &y); i++) {
        double apart = 0, size = 0;
        for (int64_t k = 0; x.gradient && k < x.rows * x.columns; k++) {
            apart += pow((double)x.gradient[k] - (double)y.gradient[k], 2);
            size += pow((double)x.gradient[k], 2);
        }
        if (sqrt(apart) > 0.2 * sqrt(size) + 1e-6)
            fail_msg("%s: gradient of %s is off by %.3g", fields, x.name, sqrt(apart / size));
    }
    assert_int_equal(eng_trainer_data(b, drawn_ids(), N_IDS, &err), ENG_OK);
    assert_true(run_until(b, 0).last.loss < log(64));
    eng_trainer_destroy(a);
    eng_trainer_destroy(b);
}

static void test_bf16_products(void **state)
{
    (void)state;
    check_bf16("engram_at=1 gate=plain");
    check_bf16("engram_at=1 gate=plain streams=2 tied_head=true embed_scale=0.2 conv_kernel=4");
    check_bf16("engram_at=0 fusion=input threads=2");
}

/* ---- learning, loads, failure ---- */

static void test_arms_learn(void **state)
{
    (void)state;
    EngTrainConfig base = tiny("tokens=5760 lr=0.02"), arm = base;
    apply_fields(&arm, "engram_at=0 row_start=4001");
    EngTrainer *a = new_trainer(&base), *b = new_trainer(&arm);
    assert_true(run_until(a, 0).last.loss < 0.7 * log(64));
    assert_true(run_until(b, 0).last.loss < 0.7 * log(64));
    eng_trainer_destroy(a);
    eng_trainer_destroy(b);
}

static void test_frozen_rows_keep_their_values(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("engram_at=1 rows=frozen");
    EngTrainer *a = new_trainer(&config), *b = new_trainer(&config);
    run_until(a, 640);
    const size_t bytes = (size_t)(a->tensors.all - a->tensors.dense) * sizeof *a->values;
    assert_memory_equal(a->values + a->tensors.dense, b->values + b->tensors.dense, bytes);
    assert_memory_not_equal(a->values, b->values, (size_t)a->tensors.dense * sizeof *a->values);
    eng_trainer_destroy(a);
    eng_trainer_destroy(b);
}

static void test_load_counts(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("tokens=640 bias_step=0.01");
    EngTrainer *t = new_trainer(&config);
    int64_t counts[6], sum = 0;
    float bias[6];
    EngTrainResult result = run_until(t, 0);
    for (int layer = 0; layer < 2; layer++) {
        eng_trainer_load_counts(t, layer, counts, bias);
        for (int e = 0; e < 6; e++) {
            sum += counts[e];
            assert_true(fabsf(bias[e]) <= 0.1001f);
        }
    }
    assert_int_equal(sum, 640 * 2 * 2);
    assert_true(result.last.load_max >= 1);
    eng_trainer_reset_counts(t);
    eng_trainer_load_counts(t, 0, counts, NULL);
    assert_int_equal(counts[0], 0);
    eng_trainer_destroy(t);
}

static void test_divergence_fails_the_run(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("lr=100 warmup_steps=0 head_scale=5");
    EngTrainer *t = new_trainer(&config);
    EngTrainResult result = run_until(t, 0);
    assert_true(*result.failed && !result.finished);
    assert_non_null(strstr(result.failed, "loss is "));
    int64_t step = result.last.step;
    result = run_until(t, 0);
    assert_true(*result.failed && result.last.step == step);
    eng_trainer_destroy(t);
}

static void test_every_rule_descends(void **state)
{
    const char *const rules[] = {"rule=adamw", "rule=muon", "rule=sgd table_rule=sgd lr=0.5",
                                 "vocab_rule=sinkhorn table_rule=sinkhorn lr=0.02", "clip=0.1"};
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        EngTrainConfig config = tiny("engram_at=1 tokens=5760");
        apply_fields(&config, rules[i]);
        EngTrainer *t = new_trainer(&config);
        EngTrainResult result = run_until(t, 0);
        if (*result.failed || result.last.loss > log(64) - 0.02)
            fail_msg("%s: %s, loss %g", rules[i], result.failed, result.last.loss);
        eng_trainer_destroy(t);
    }
}

/* ---- faults ---- */

static void test_failing_allocations(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("engram_at=0,1 streams=2 conv_kernel=4 vocab_rule=sinkhorn");
    uint64_t before = eng_mem_live_blocks();
    EngTrainer *t = NULL;
    EngErr err = {0};
    int failures = 0;
    for (EngStatus status = ENG_NO_MEMORY; status; failures++) {
        eng_mem_fail_at((uint64_t)failures + 1);
        status = eng_trainer_create(&config, &t, &err);
        eng_mem_fail_at(0);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
        assert_null(t);
        assert_int_equal(eng_mem_live_blocks(), before);
    }
    assert_true(failures > 20);
    eng_trainer_destroy(t);
    assert_int_equal(eng_mem_live_blocks(), before);
}

static void test_no_allocation_in_a_step(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("engram_at=1 streams=2 conv_kernel=4");
    EngTrainer *t = new_trainer(&config);
    run_until(t, 64);
    eng_mem_fail_at(0);
    run_until(t, 640);
    assert_int_equal(eng_mem_fail_at(0), 0);
    eng_trainer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_is_the_backbones),
        cmocka_unit_test(test_same_seed_same_bits),
        cmocka_unit_test(test_lanes_agree),
        cmocka_unit_test(test_arms_share_start_and_data),
        cmocka_unit_test(test_evaluation_changes_nothing),
        cmocka_unit_test(test_lanes_are_judged_alike),
        cmocka_unit_test(test_silence_is_zero_values),
        cmocka_unit_test(test_logits_of_last_streams_give_the_loss),
        cmocka_unit_test(test_bf16_products),
        cmocka_unit_test(test_arms_learn),
        cmocka_unit_test(test_frozen_rows_keep_their_values),
        cmocka_unit_test(test_load_counts),
        cmocka_unit_test(test_divergence_fails_the_run),
        cmocka_unit_test(test_every_rule_descends),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_no_allocation_in_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
