/* The backbone as a whole: known answers from an independent program, decoding against prefill, the
 * hooks, and what is refused. Blocks one by one: test_backbone_blocks.c.
 */
#include "backbone_test.h"

#include "base/rng.h"

/* ---- known answers ---- */

typedef struct Last {
    float streams[4096], vision[4096];
} Last;

static void keep_last(void *context, int layer, EngActivation what, int index, const void *data,
                      int64_t rows, int64_t columns)
{
    Last *last = context;
    float *to = what == ENG_ACT_STREAMS_OUT  ? last->streams
                : what == ENG_ACT_VISION_OUT ? last->vision
                                             : NULL;
    (void)layer, (void)index;
    if (to) memcpy(to, data, (size_t)(rows * columns) * sizeof *to);
}

static void read_array(FILE *file, const char *name, double *out, int64_t n)
{
    char word[64];
    int count;
    assert_int_equal(fscanf(file, "%63s %d", word, &count), 2);
    assert_string_equal(word, name);
    assert_int_equal(count, n);
    for (int64_t i = 0; i < n; i++) assert_int_equal(fscanf(file, "%la", &out[i]), 1);
}

static void test_known_answers(void **state)
{
    FILE *file = fopen(ENG_SOURCE_DIR "/tests/data/backbone_case.txt", "r");
    double want[4096];
    float logits[7 * 11];
    int32_t ids[7];
    static Last last;
    EngBackboneConfig cases[3];
    const char *const names[] = {"streams", "single", "dense"};
    char line[256], name[64];
    (void)state;
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    for (int i = 0; i < 7; i++) ids[i] = (5 * i + 3) % 11;
    cases[0] = small_config(3, ENG_F32);
    cases[0].vision_layers = 2, cases[0].vision_patches = 5, cases[0].vision_hidden = 6;
    cases[0].vision_heads = 2, cases[0].vision_width = 13;
    cases[1] = small_config(1, ENG_F32);
    cases[1].kv_heads = 3, cases[1].tied_head = true, cases[1].top_k = 3;
    cases[2] = small_config(2, ENG_F32);
    cases[2].experts = cases[2].top_k = 0, cases[2].shared_experts = 3;
    for (int i = 0; i < 3; i++) {
        EngBackboneConfig *c = &cases[i];
        EngErr err = {0};
        int64_t starts[] = {0, 7}, n = 7 * c->streams * c->hidden;
        EngBackboneStep step = {.ids = ids, .starts = starts, .n_seqs = 1};
        c->hooks = (EngBackboneHooks){.context = &last, .activation = keep_last};
        EngBackbone *b = make_backbone(c);
        set_formula(b);
        assert_int_equal(eng_backbone_forward(b, &step, true, logits, &err), ENG_OK);
        snprintf(name, sizeof name, "%s_streams", names[i]);
        read_array(file, name, want, n);
        assert_close(name, last.streams, want, n, 3e-6);
        snprintf(name, sizeof name, "%s_logits", names[i]);
        read_array(file, name, want, 7 * 11);
        assert_close(name, logits, want, 7 * 11, 3e-6);
        if (c->vision_layers) {
            snprintf(name, sizeof name, "%s_vision", names[i]);
            read_array(file, name, want, 30);
            assert_close(name, last.vision, want, 30, 3e-6);
        }
        eng_backbone_destroy(b);
    }
    fclose(file);
}

/* ---- sequences ---- */

#define LONG 67 /* tokens: more than a block of queries or of mixing */

static void random_ids(int32_t *ids, int n, uint64_t seed)
{
    EngRng rng;
    eng_rng_seed(&rng, seed);
    for (int i = 0; i < n; i++) ids[i] = (int32_t)eng_rng_below(&rng, 11);
}

/* Logits of every position of one sequence, by one prefill. */
static void whole(EngBackbone *b, const int32_t *ids, int n, float *logits)
{
    EngErr err = {0};
    int64_t starts[] = {0, n};
    EngBackboneStep step = {.ids = ids, .starts = starts, .n_seqs = 1};
    assert_int_equal(eng_backbone_truncate(b, 0, 0, &err), ENG_OK);
    assert_int_equal(eng_backbone_forward(b, &step, true, logits, &err), ENG_OK);
    assert_int_equal(eng_backbone_length(b, 0), n);
    assert_int_equal(eng_backbone_truncate(b, 0, 0, &err), ENG_OK);
}

/* Token by token, in chunks, and several sequences of different lengths in one step: the same
 * logits as by one prefill each. */
static void check_sequences(int streams, EngDtype dtype, double limit)
{
    EngBackboneConfig c = small_config(streams, dtype);
    EngBackbone *b;
    EngErr err = {0};
    int32_t ids[3][LONG];
    static float want[3][LONG * 11];
    float got[3 * 11];
    /* bf16 rounding could tip a choice between experts: then all are chosen. */
    if (dtype == ENG_BF16) c.top_k = c.experts;
    if (eng_backbone_create(&c, &b, &err)) { /* bf16 on a processor without AVX-512 */
        assert_int_equal(err.status, ENG_UNSUPPORTED);
        return;
    }
    for (int s = 0; s < 3; s++) {
        random_ids(ids[s], LONG, (uint64_t)s + 1);
        whole(b, ids[s], LONG, want[s]);
    }
    for (int t = 0; t < LONG; t++) {
        assert_int_equal(eng_backbone_prefill(b, 0, ids[0] + t, 1, got, &err), ENG_OK);
        assert_close_f32("token by token", got, want[0] + t * 11, 11, limit);
    }
    static const int chunks[] = {1, 30, 7, 29};
    assert_int_equal(eng_backbone_truncate(b, 0, 0, &err), ENG_OK);
    for (int i = 0, at = 0; i < LENGTH_OF(chunks); at += chunks[i], i++) {
        assert_int_equal(eng_backbone_prefill(b, 1, ids[1] + at, chunks[i], got, &err), ENG_OK);
        assert_close_f32("chunks", got, want[1] + (at + chunks[i] - 1) * 11, 11, limit);
    }
    /* Slots 2, 0, 1 get 5, 1 and 3 tokens, then all three one by one. */
    const int first[3] = {1, 3, 5}; /* of slot 0, 1, 2 */
    const int slots[3] = {2, 0, 1};
    int64_t starts[4] = {0};
    int32_t flat[9], next[3];
    for (int s = 0; s < 3; s++) {
        assert_int_equal(eng_backbone_truncate(b, s, 0, &err), ENG_OK);
        starts[s + 1] = starts[s] + first[slots[s]];
        memcpy(flat + starts[s], ids[slots[s]], (size_t)first[slots[s]] * sizeof *flat);
    }
    EngBackboneStep step = {flat, starts, slots, 3};
    assert_int_equal(eng_backbone_forward(b, &step, false, got, &err), ENG_OK);
    for (int s = 0; s < 3; s++)
        assert_close_f32("ragged", got + s * 11, want[slots[s]] + (first[slots[s]] - 1) * 11, 11,
                         limit);
    for (int t = 0; t < 20; t++) {
        for (int s = 0; s < 3; s++) next[s] = ids[s][first[s] + t];
        assert_int_equal(eng_backbone_decode(b, next, 3, got, &err), ENG_OK);
        for (int s = 0; s < 3; s++)
            assert_close_f32("decode", got + s * 11, want[s] + (first[s] + t) * 11, 11, limit);
    }
    eng_backbone_destroy(b);
}

static void test_sequences(void **state)
{
    (void)state;
    check_sequences(1, ENG_F32, 2e-5);
    check_sequences(3, ENG_F32, 2e-5);
    check_sequences(1, ENG_BF16, 0.03);
    check_sequences(4, ENG_BF16, 0.03);
}

/* Rejected drafts leave no trace. */
static void test_truncate(void **state)
{
    EngBackboneConfig c = small_config(2, ENG_F32);
    EngBackbone *b = make_backbone(&c);
    EngErr err = {0};
    int32_t ids[12], wrong[5] = {1, 1, 1, 1, 1};
    float want[11], got[11];
    (void)state;
    random_ids(ids, 12, 9);
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 12, want, &err), ENG_OK);
    assert_int_equal(eng_backbone_truncate(b, 0, 0, &err), ENG_OK);
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 6, NULL, &err), ENG_OK);
    assert_int_equal(eng_backbone_prefill(b, 0, wrong, 5, NULL, &err), ENG_OK);
    assert_int_equal(eng_backbone_truncate(b, 0, 12, &err), ENG_USAGE);
    assert_int_equal(eng_backbone_truncate(b, 3, 0, &err), ENG_USAGE);
    assert_int_equal(eng_backbone_truncate(b, 0, 6, &err), ENG_OK);
    assert_int_equal(eng_backbone_prefill(b, 0, ids + 6, 6, got, &err), ENG_OK);
    assert_close_f32("after a rejection", got, want, 11, 2e-5);
    eng_backbone_destroy(b);
}

/* ---- hooks ---- */

typedef struct Seen {
    int calls, layers[16], fail_at;
    bool add;
    int64_t tokens;
    int width;
} Seen;

static EngStatus before(void *context, const EngBackboneStep *step, int layer, void *streams,
                        EngErr *err)
{
    Seen *seen = context;
    seen->layers[seen->calls++ % 16] = layer;
    seen->tokens = step->starts[step->n_seqs];
    if (layer == seen->fail_at) return ENG_FAIL(err, ENG_IO, "rows did not arrive");
    for (int64_t i = 0; seen->add && layer == 1 && i < seen->tokens * seen->width; i++)
        ((float *)streams)[i] += 0.5f + (float)(i % 7);
    return ENG_OK;
}

static void test_before_layer(void **state)
{
    Seen seen = {.fail_at = -1, .width = 2 * 9};
    EngBackboneConfig c = small_config(2, ENG_F32);
    EngErr err = {0};
    int32_t ids[] = {1, 2, 3, 4, 5};
    float plain[11], written[11];
    (void)state;
    c.hooks = (EngBackboneHooks){.context = &seen, .before_layer = before};
    EngBackbone *b = make_backbone(&c);
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 5, plain, &err), ENG_OK);
    assert_int_equal(seen.calls, 2);
    assert_int_equal(seen.layers[0], 0);
    assert_int_equal(seen.layers[1], 1);
    assert_int_equal(seen.tokens, 5);
    /* What is written to the streams counts. */
    seen.add = true;
    assert_int_equal(eng_backbone_truncate(b, 0, 0, &err), ENG_OK);
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 5, written, &err), ENG_OK);
    double difference = 0;
    for (int i = 0; i < 11; i++) difference += fabs(plain[i] - written[i]);
    assert_true(difference > 0.1);
    /* A failure reaches the caller, and the sequence has not grown. */
    seen.fail_at = 1;
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 2, written, &err), ENG_IO);
    assert_string_equal(err.text, "rows did not arrive");
    assert_int_equal(eng_backbone_length(b, 0), 5);
    eng_backbone_destroy(b);
}

/* A paced backbone calls the hook with the embeddings in place, computes nothing, says so. */
static void test_paced(void **state)
{
    Seen seen = {.fail_at = -1, .width = 3 * 9, .add = true};
    EngBackboneConfig c = small_config(3, ENG_F32);
    EngErr err = {0};
    int32_t ids[] = {1, 2, 3};
    float logits[11];
    EngBackboneSize computed, paced;
    (void)state;
    assert_int_equal(eng_backbone_size(&c, &computed, &err), ENG_OK);
    c.paced_layer_ns = 1000;
    c.hooks = (EngBackboneHooks){.context = &seen, .before_layer = before};
    assert_int_equal(eng_backbone_size(&c, &paced, &err), ENG_OK);
    assert_true(paced.bytes < computed.bytes);
    assert_int_equal(paced.total, computed.total); /* of the model it stands for */
    EngBackbone *b = make_backbone(&c);
    assert_true(eng_backbone_emulated(b));
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 3, NULL, &err), ENG_OK);
    assert_int_equal(seen.calls, 2);
    assert_int_equal(eng_backbone_length(b, 0), 3);
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 3, logits, &err), ENG_USAGE);
    eng_backbone_destroy(b);
    c.paced_layer_ns = 0;
    b = make_backbone(&c);
    assert_false(eng_backbone_emulated(b));
    eng_backbone_destroy(b);
    c.paced_layer_ns = 1000, c.vision_layers = 2;
    assert_int_equal(eng_backbone_create(&c, &b, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "paced_vision_ns"));
    c.paced_layer_ns = 0, c.vision_layers = 0, c.paced_vision_ns = 1000;
    c.hooks = (EngBackboneHooks){0};
    b = make_backbone(&c); /* a paced encoder before computed layers */
    assert_true(eng_backbone_emulated(b));
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 3, logits, &err), ENG_OK);
    eng_backbone_destroy(b);
}

/* A timed window allocates nothing of ours. */
static void test_no_allocation(void **state)
{
    EngBackboneConfig c = small_config(3, ENG_F32);
    EngBackbone *b = make_backbone(&c);
    EngErr err = {0};
    int32_t ids[LONG];
    float logits[11];
    (void)state;
    random_ids(ids, LONG, 2);
    eng_mem_fail_at(0);
    assert_int_equal(eng_backbone_prefill(b, 0, ids, LONG, logits, &err), ENG_OK);
    assert_int_equal(eng_backbone_decode(b, ids, 3, logits, &err), ENG_OK);
    assert_int_equal(eng_mem_fail_at(0), 0);
    eng_backbone_destroy(b);
}

/* ---- refusals ---- */

static void test_shapes(void **state)
{
    static const struct {
        size_t offset;
        int value;
        const char *said;
    } cases[] = {
        {offsetof(EngBackboneConfig, layers), 0, "layers=0"},
        {offsetof(EngBackboneConfig, hidden), 65537, "hidden=65537"},
        {offsetof(EngBackboneConfig, streams), 9, "streams=9"},
        {offsetof(EngBackboneConfig, kv_heads), 2, "kv_heads=2"},
        {offsetof(EngBackboneConfig, kv_heads), 4, "kv_heads=4"},
        {offsetof(EngBackboneConfig, head_dim), 5, "head_dim=5"},
        {offsetof(EngBackboneConfig, top_k), 6, "top_k=6"},
        {offsetof(EngBackboneConfig, top_k), 0, "top_k=0"},
        {offsetof(EngBackboneConfig, vocab), 0, "vocab=0"},
        {offsetof(EngBackboneConfig, dtype), ENG_FP8, "f32 or bf16"},
        {offsetof(EngBackboneConfig, distinct_layers), 3, "distinct_layers=3"},
        {offsetof(EngBackboneConfig, threads), 0, "threads=0"},
        {offsetof(EngBackboneConfig, max_seqs), 0, "max_seqs=0"},
        {offsetof(EngBackboneConfig, vision_layers), 1, "vision_patches=0"},
    };
    EngErr err = {0};
    EngBackbone *b;
    (void)state;
    for (int i = 0; i < LENGTH_OF(cases); i++) {
        EngBackboneConfig c = small_config(2, ENG_F32);
        memcpy((char *)&c + cases[i].offset, &cases[i].value, sizeof cases[i].value);
        assert_int_equal(eng_backbone_create(&c, &b, &err), ENG_USAGE);
        if (!strstr(err.text, cases[i].said)) fail_msg("no '%s' in: %s", cases[i].said, err.text);
        assert_null(b);
    }
    EngBackboneConfig c = small_config(8, ENG_F32);
    c.layers = 1024, c.hidden = 65536, c.max_seqs = 65536, c.max_len = 1 << 22, c.head_dim = 1024;
    EngStatus status = eng_backbone_create(&c, &b, &err);
    assert_true(status == ENG_USAGE || status == ENG_NO_MEMORY);
    c = small_config(2, ENG_F32);
    c.max_len = 1 << 22, c.max_seqs = 60000; /* 24 TB of cache */
    assert_int_equal(eng_backbone_create(&c, &b, &err), ENG_NO_MEMORY);
    assert_non_null(strstr(err.text, "bytes"));
}

static void test_steps(void **state)
{
    EngBackboneConfig c = small_config(2, ENG_F32);
    EngBackbone *b = make_backbone(&c);
    EngErr err = {0};
    int32_t ids[100] = {0}, bad[] = {1, 11}, negative[] = {-1};
    const int twice[] = {1, 1}, outside[] = {3};
    int64_t starts[] = {0, 1, 2}, empty[] = {0, 1, 1};
    EngBackboneStep step = {ids, starts, twice, 2};
    (void)state;
    assert_int_equal(eng_backbone_prefill(b, 0, bad, 2, NULL, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "id 11"));
    assert_int_equal(eng_backbone_prefill(b, 0, negative, 1, NULL, &err), ENG_USAGE);
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 71, NULL, &err), ENG_USAGE); /* of 70 */
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 0, NULL, &err), ENG_USAGE);
    assert_int_equal(eng_backbone_forward(b, &step, false, NULL, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "twice"));
    step = (EngBackboneStep){ids, starts, outside, 1};
    assert_int_equal(eng_backbone_forward(b, &step, false, NULL, &err), ENG_USAGE);
    step = (EngBackboneStep){ids, empty, NULL, 2};
    assert_int_equal(eng_backbone_forward(b, &step, false, NULL, &err), ENG_USAGE);
    assert_int_equal(eng_backbone_decode(b, ids, 4, NULL, &err), ENG_USAGE); /* of 3 */
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 70, NULL, &err), ENG_OK);
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 21, NULL, &err), ENG_USAGE); /* 91 of 90 */
    assert_int_equal(eng_backbone_prefill(b, 0, ids, 20, NULL, &err), ENG_OK);
    assert_int_equal(eng_backbone_length(b, 0), 90);
    eng_backbone_destroy(b);
}

static void test_no_memory(void **state)
{
    int failures = 0;
    (void)state;
    for (uint64_t n = 1;; n++) {
        EngBackboneConfig c = small_config(2, ENG_F32);
        EngBackbone *b;
        EngErr err = {0};
        uint64_t live = eng_mem_live_blocks();
        c.vision_layers = 1, c.vision_patches = 3, c.vision_hidden = 4, c.vision_heads = 2;
        c.vision_width = 5;
        eng_mem_fail_at(n);
        EngStatus status = eng_backbone_create(&c, &b, &err);
        eng_mem_fail_at(0);
        eng_backbone_destroy(b);
        assert_int_equal(eng_mem_live_blocks(), live);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
        failures++;
    }
    assert_in_range(failures, 40, 80);
}

/* ---- weights and accounting ---- */

/* The same seed gives the same logits, whatever the memory held; more experts leave the first ones
 * as they are; another seed does not. */
static void test_seeds(void **state)
{
    EngBackboneConfig c = small_config(2, ENG_F32), more = c, other = c;
    EngErr err = {0};
    int32_t ids[] = {7, 0, 10};
    float a[11], z[11];
    int64_t n;
    EngDtype dtype;
    (void)state;
    more.experts = 8, other.seed = 4;
    EngBackbone *one = make_backbone(&c), *two = make_backbone(&c), *wide = make_backbone(&more),
                *third = make_backbone(&other);
    assert_int_equal(eng_backbone_prefill(one, 0, ids, 3, a, &err), ENG_OK);
    assert_int_equal(eng_backbone_prefill(two, 1, ids, 3, z, &err), ENG_OK);
    assert_memory_equal(a, z, sizeof a);
    for (int layer = 0; layer < 2; layer++)
        for (int e = 0; e < 5; e++) {
            float *x = eng_backbone_weight(one, ENG_W_EXPERT_UP, layer, e, &n, &dtype);
            assert_int_equal(n, 9 * 14);
            assert_memory_equal(x, eng_backbone_weight(wide, ENG_W_EXPERT_UP, layer, e, &n, &dtype),
                                9 * 14 * sizeof(float));
            assert_true(memcmp(x, eng_backbone_weight(third, ENG_W_EXPERT_UP, layer, e, &n, &dtype),
                               9 * 14 * sizeof(float)) != 0);
        }
    eng_backbone_destroy(one), eng_backbone_destroy(two);
    eng_backbone_destroy(wide), eng_backbone_destroy(third);
}

/* Shared layers are the same memory, and two threads give the answer of one. */
static void test_shared_layers_and_threads(void **state)
{
    EngBackboneConfig c = small_config(2, ENG_F32);
    EngErr err = {0};
    int32_t ids[LONG];
    float a[11], z[11];
    int64_t n;
    EngDtype dtype;
    (void)state;
    random_ids(ids, LONG, 5);
    c.layers = 5, c.distinct_layers = 2;
    EngBackbone *one = make_backbone(&c);
    c.threads = 2;
    EngBackbone *two = make_backbone(&c);
    assert_ptr_equal(eng_backbone_weight(one, ENG_W_QKV, 4, 0, &n, &dtype),
                     eng_backbone_weight(one, ENG_W_QKV, 0, 0, &n, &dtype));
    assert_ptr_not_equal(eng_backbone_weight(one, ENG_W_QKV, 4, 0, &n, &dtype),
                         eng_backbone_weight(one, ENG_W_QKV, 1, 0, &n, &dtype));
    assert_int_equal(eng_backbone_prefill(one, 0, ids, LONG, a, &err), ENG_OK);
    assert_int_equal(eng_backbone_prefill(two, 0, ids, LONG, z, &err), ENG_OK);
    assert_close_f32("two threads", z, a, 11, 2e-5);
    eng_backbone_destroy(one), eng_backbone_destroy(two);
}

static void test_accounting(void **state)
{
    EngBackboneConfig c = small_config(3, ENG_F32);
    EngBackboneSize size;
    EngErr err = {0};
    (void)state;
    assert_int_equal(eng_backbone_size(&c, &size, &err), ENG_OK);
    int64_t expert = 3 * 9 * 7, mix = 27 * 15 + 15 + 3;
    int64_t rest = 9 + 9 * 30 + 18 * 9 + 9 + 9 * 5 + 3 * 9 * 7 + 2 * mix;
    assert_int_equal(size.expert, expert);
    assert_int_equal(size.total, 2 * (rest + 5 * expert) + 9); /* and the last norm */
    assert_int_equal(size.active, 2 * (rest + 2 * expert) + 9);
    /* Per token and layer: projections, experts, router, mixing, and the keys seen. */
    double each = 9 * 30 + 18 * 9 + 3 * expert + 9 * 5 + 2 * 27 * 15;
    assert_true(eng_backbone_flops(&c, 2, 10) == 2 * (2 * each * 2 + 4 * 18 * (11 + 12)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers), cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_truncate),      cmocka_unit_test(test_before_layer),
        cmocka_unit_test(test_paced),         cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_steps),         cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_seeds),         cmocka_unit_test(test_shared_layers_and_threads),
        cmocka_unit_test(test_accounting),    cmocka_unit_test(test_no_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
