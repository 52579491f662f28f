/* Models by tensor shapes: the published checkpoint, sparsity, and caches of context. */
#include "tests/unit/sim/planner_test.h"

#include "base/mem.h"
#include "kernels/address/preset.h"
#include "sim/planner/model.h"

static void open_flash(EngModel *model)
{
    EngErr err = {0};
    if (eng_model_open("v41-flash", model, &err)) fail_msg("%s", err.text);
}

/* By hand from the configuration: 40 layers, and 3 that predict with 128 experts each; weights of
 * 8 bits, experts of 4 with a scale of 8 bits per 32, routers, embedding and vision encoder of 16.
 */
static void test_bytes_by_hand(void **state)
{
    (void)state;
    EngErr err = {0};
    static EngModel model;
    uint64_t bytes;
    open_flash(&model);
    assert_int_equal(eng_model_bytes(&model, &bytes, &err), ENG_OK);
    const uint64_t hidden = 5120, expert = 3 * 2304 * hidden;
    const uint64_t experts = (40 * 384 + 3 * 128) * (expert / 2 + expert / 32);
    const uint64_t attention =
        43 * (1280 * hidden + 32768 * 1280 + 512 * hidden + 8192 * 4096 + hidden * 8192);
    const uint64_t dense = 40 * expert + 2 * 25600 * 6144 + attention;
    const uint64_t wide =
        2 * (40 * 384 * hidden + 2 * 129280 * hidden + 32 * (4 * 1024 * 1024 + 3 * 1024 * 2816));
    assert_near((double)bytes, (double)(experts + dense + wide), 0, "all tensors");
    double rest = model.checkpoint.value - 768022850.0 * 264;
    assert_near((double)bytes / rest, 1, 0.005, "checkpoint without tables");
    for (int i = 0; i < model.n_weights; i++) {
        assert_true(model.weight_info[i].from.origin != ENG_UNKNOWN);
        assert_true(*model.weight_info[i].from.source && *model.weight_info[i].from.date);
    }
}

/* Experts are what ranks split. */
static void test_split(void **state)
{
    (void)state;
    EngErr err = {0};
    static EngModel model;
    uint64_t whole, part;
    open_flash(&model);
    assert_int_equal(eng_model_split(&model, 8, &err), ENG_OK);
    assert_int_equal(eng_tensor_bytes(&model.weights[0], &part, &err), ENG_OK);
    assert_int_equal(eng_model_split(&model, 1, &err), ENG_OK);
    assert_int_equal(eng_tensor_bytes(&model.weights[0], &whole, &err), ENG_OK);
    assert_int_equal(whole, 8 * part);
    /* Five ranks: 77 of 384 experts on four of them, and 26 of 128 on each but the last. */
    assert_int_equal(eng_model_split(&model, 5, &err), ENG_OK);
    assert_int_equal(eng_tensor_bytes(&model.weights[0], &part, &err), ENG_OK);
    assert_int_equal(part, whole / 384 * 77);
    for (int i = 0; i < model.n_weights; i++)
        if (!strcmp(model.weights[i].name, "experts of prediction layers")) {
            uint64_t expert = 3ull * 2304 * 5120 / 2 * 3;
            assert_int_equal(eng_tensor_bytes(&model.weights[i], &part, &err), ENG_OK);
            assert_int_equal(part, 26 * expert);
            assert_int_equal(eng_model_split(&model, 256, &err), ENG_OK);
            assert_int_equal(eng_tensor_bytes(&model.weights[i], &part, &err), ENG_OK);
            assert_int_equal(part, expert);
        }
    assert_int_equal(eng_model_split(&model, 384, &err), ENG_OK);
    assert_int_equal(eng_model_split(&model, 385, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "at most 384 parts"));
    assert_int_equal(eng_model_split(&model, 0, &err), ENG_USAGE);
    assert_int_equal(eng_model_open("no-such", &model, &err), ENG_NOT_FOUND);
}

/* Of parameters that a token does not use, 732 B, experts are about 73 %: both from the shapes, of
 * which a token takes 6 experts of 384 a layer, and from the rows of the tables. */
static void test_sparsity(void **state)
{
    (void)state;
    EngErr err = {0};
    static EngModel model;
    EngPreset preset;
    EngAddress address;
    double experts = 0, tables = 0;
    open_flash(&model);
    for (int i = 0; i < model.n_weights; i++) {
        const EngTensorShape *w = &model.weights[i];
        if (strcmp(w->name, "routed experts")) continue;
        experts = (double)w->count;
        for (int d = 0; d < w->n_dims; d++) experts *= (double)w->dims[d];
    }
    if (eng_preset_find("v41-flash", &preset, &err)) fail_msg("%s", err.text);
    assert_int_equal(eng_address_build(&preset.address, &address, &err), ENG_OK);
    for (int l = 0; l < address.n_layers; l++) tables += (double)address.rows[l] * preset.row_dims;
    double unused = experts * (384 - 6) / 384;
    assert_near((unused + tables) / 1e9, 732, 0.5, "sparse parameters");
    assert_near(unused / (unused + tables), 0.73, 0.005, "rho");
}

/* ---- caches ---- */

static double per_token(const char *format)
{
    EngErr err = {0};
    static EngModel model;
    double sum = 0;
    open_flash(&model);
    if (eng_model_kv(&model, format, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < model.n_kv; i++) {
        uint64_t bytes;
        assert_int_equal(eng_tensor_bytes(&model.kv[i], &bytes, &err), ENG_OK);
        assert_ptr_equal(model.kv[i].name, model.kv_info[i].name);
        assert_true(*model.kv_info[i].from.source && *model.kv_info[i].from.date);
        if (!model.kv[i].window) sum += (double)bytes / (model.kv[i].every ? model.kv[i].every : 1);
    }
    return sum;
}

/* Four layers write the cache that all read: three an entry for two tokens, one for each. An entry
 * is 512 values and an index key of 128. Each rank has all of it. In 4 bits these are 288 + 68 B
 * and the published 890 B a token; in 8 bits 528 + 132, of which a server measured 1,670.75 on each
 * of four ranks, with what its pages leave empty. */
static void test_caches(void **state)
{
    (void)state;
    EngErr err = {0};
    static EngModel model;
    EngPreset preset;
    EngLedger ledger;
    assert_near(per_token("fp4"), (3 / 2.0 + 1) * (288 + 68), 0, "4 bits");
    assert_near(per_token("fp4"), 890, 0, "published");
    assert_near(per_token("fp8"), (3 / 2.0 + 1) * (528 + 132), 0, "8 bits");
    assert_near(per_token("fp8") / 1670.75, 1, 0.015, "measured per rank");
    open_flash(&model);
    assert_int_equal(eng_model_kv(&model, NULL, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "fp4 (890 B a token), fp8 (1650 B a token)"));
    assert_int_equal(eng_model_kv(&model, "bf16", &err), ENG_USAGE);
    /* Two million tokens of 128 streams at four ranks: 3.3 GB on each, and windows of 128 rows of
     * 528 B in 43 layers for each stream. */
    assert_int_equal(eng_model_kv(&model, "fp8", &err), ENG_OK);
    assert_int_equal(eng_model_split(&model, 4, &err), ENG_OK);
    if (eng_preset_find("v41-flash", &preset, &err)) fail_msg("%s", err.text);
    EngLedgerInput in = {.preset = &preset,
                         .format = ENG_ROW_FP8,
                         .tables = ENG_PLACE_HOST,
                         .shards = 1,
                         .numa_copies = 1,
                         .replicas = 1,
                         .batch_tokens = 1,
                         .staging_buffers = 2,
                         .kv = model.kv,
                         .n_kv = model.n_kv,
                         .kv_tokens = 2000000,
                         .kv_streams = 128};
    if (eng_ledger_build(&in, &ledger, &err)) fail_msg("%s", err.text);
    double sum = 0;
    for (int i = 0; i < ledger.n; i++)
        if (!strncmp(ledger.lines[i].name, "cache of", 8)) sum += (double)ledger.lines[i].bytes;
    assert_near(sum, 2e6 * 1650 + 128.0 * 128 * 43 * 528, 0, "caches of a rank");
    assert_near(ledger.kv_per_token, 1650, 0, "each more");
    in.kv_tokens = 3; /* the odd one has an entry of its own */
    if (eng_ledger_build(&in, &ledger, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < ledger.n; i++)
        if (!strcmp(ledger.lines[i].name, "cache of latents of layers 2, 8, 14"))
            assert_int_equal(ledger.lines[i].bytes, 3 * 2 * 512);
    in.kv_streams = -1;
    assert_int_equal(eng_ledger_build(&in, &ledger, &err), ENG_USAGE);
}

/* ---- files ---- */

#define SAID "\"kind\": \"spec\", \"date\": \"2026-11-29\", \"source\": \"x\""
#define FILE_OF(tensor, cache)                                                                     \
    "{\"summary\": \"s\", \"layers\": 2, " SAID ", \"weights\": [{" tensor "}], \"kv\": [{" cache  \
    "}]}"
#define FINE "\"name\": \"w\", \"bits\": 8, \"dims\": [4]"
/* Four bytes of tensors. */
#define CHECKPOINT(more)                                                                           \
    "{\"summary\": \"s\", \"layers\": 2, " SAID ", \"checkpoint\": {" SAID ", " more               \
    "}, \"weights\": [{" FINE "}], \"kv\": [{" FINE "}]}"
#define MODEL(tensor) FILE_OF(tensor, "\"name\": \"k\", \"bits\": 8, \"dims\": [8]")
#define CACHE(more)   FILE_OF(FINE, "\"name\": \"k\", \"bits\": 8, \"dims\": [8], " more)

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {MODEL("\"name\": \"w\", \"bits\": 8"), "model m: w: dims are not"},
        {MODEL("\"name\": \"w\", \"dims\": [4]"), "w"},
        {MODEL("\"name\": \"w\", \"bits\": 8, \"dims\": [0]"), "no shape"},
        {MODEL("\"name\": \"w\", \"bits\": 8, \"dims\": [-4]"), "no shape"},
        {MODEL("\"name\": \"w\", \"bits\": 8.5, \"dims\": [4]"), "w: bits is not"},
        {MODEL("\"name\": \"w\", \"bits\": 4294967304, \"dims\": [4]"), "w: bits is not"},
        {MODEL(FINE ", \"count\": 0"), "count"},
        {MODEL(FINE ", \"split\": \"yes\""), "w: split is neither true nor false"},
        {MODEL(FINE ", \"split\": 1"), "w: split is neither true nor false"},
        {CHECKPOINT("\"value\": 4, \"unit\": \"B\""), "does not say how much of it are tables"},
        {CHECKPOINT("\"value\": 4, \"unit\": \"B\", \"tables\": -1"), "how much of it are tables"},
        {CHECKPOINT("\"value\": 5, \"unit\": \"B\", \"tables\": 0"), "m: checkpoint: is 4.657e-09"},
        {CHECKPOINT("\"value\": 4, \"unit\": \"B\", \"tables\": 1"), "tensors and tables are"},
        {CHECKPOINT("\"value\": 4, \"unit\": \"s\", \"tables\": 0"), "unit \"s\""},
        {CHECKPOINT("\"value\": 4, \"unit\": \"B\", \"tables\": 0, \"sum\": 4"), "unknown key sum"},
        {"{\"summary\": \"s\", " SAID ", \"weights\": [{" FINE "}], \"kv\": [{" FINE "}]}",
         "how many layers"},
        {"{\"summary\": \"s\", \"layers\": 0, " SAID ", \"weights\": [{" FINE "}], \"kv\": [{" FINE
         "}]}",
         "layers is not"},
        {MODEL(FINE ", \"bytes\": 1"), "unknown key bytes"},
        {MODEL(FINE ", \"window\": 128"), "unknown key window"},
        {MODEL("\"bits\": 8, \"dims\": [4]"), "has no name"},
        {MODEL(FINE ", \"source\": \"y\""), "has no kind"},
        {CACHE("\"every\": 0"), "model m: k: every is not"},
        {CACHE("\"every\": 1.5"), "every is not"},
        {CACHE("\"window\": -1"), "window is not"},
        {CACHE("\"every\": 2, \"window\": 8"), "both"},
        {CACHE("\"format\": \"\""), "format"},
        {"{\"summary\": \"s\", \"weights\": [{" FINE "}]}", "has no kind"},
        {"{\"summary\": \"s\", " SAID ", \"weights\": []}", "weights is not a list"},
        {"{\"summary\": \"s\"", "line 1"},
    };
    for (int i = 0; i < LENGTH(wrong); i++) {
        EngErr err = {0};
        static EngModel model;
        assert_int_equal(eng_model_parse("m", wrong[i].text, &model, &err), ENG_BAD_DATA);
        if (!strstr(err.text, wrong[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, wrong[i].says);
    }
}

/* A checkpoint is what its tensors and tables are. */
static void test_checkpoint(void **state)
{
    (void)state;
    EngErr err = {0};
    static EngModel model;
    if (eng_model_parse("m", CHECKPOINT("\"value\": 6, \"unit\": \"kB\", \"tables\": 5.996"),
                        &model, &err))
        fail_msg("%s", err.text);
    assert_near(model.checkpoint.value, 6000, 0, "checkpoint");
    assert_int_equal(model.layers, 2);
}

/* Caches of one format are all there is, and need no choice. */
static void test_one_format(void **state)
{
    (void)state;
    EngErr err = {0};
    static EngModel model;
    if (eng_model_parse("m", MODEL(FINE), &model, &err)) fail_msg("%s", err.text);
    assert_int_equal(eng_model_kv(&model, NULL, &err), ENG_OK);
    assert_int_equal(model.n_kv, 1);
    assert_int_equal(eng_model_kv(&model, "fp8", &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "no other format"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_by_hand), cmocka_unit_test(test_split),
        cmocka_unit_test(test_sparsity),      cmocka_unit_test(test_caches),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_one_format),
        cmocka_unit_test(test_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
