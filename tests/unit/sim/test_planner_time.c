/* Gather times, windows and stalls: against hand-worked numbers, published curves of two drives,
 * and the formulas where they are exact. */
#include "tests/unit/sim/planner_test.h"

#include "base/rng.h"
#include "sim/planner/gather.h"
#include "sim/planner/knee.h"
#include "sim/timeline/window.h"

static EngTier make_tier(const char *name)
{
    EngTier tier = {0};
    snprintf(tier.name, sizeof tier.name, "%s", name);
    return tier;
}

static void set(EngTier *tier, EngTierField field, double value)
{
    tier->fields[field] = (EngQuantity){.value = value, .origin = ENG_MEASURED};
}

/* ---- knee ---- */

typedef struct Curve {
    double latency; /* s */
    int n;
    double outstanding[8], rate[8];
} Curve;

/* io_uring with O_DIRECT on the development machine, and pread threads on an M4 Max (omlx pull
 * request 3287): operations of 4 KiB a second. */
static const Curve g_uring = {
    70e-6, 7, {1, 2, 4, 8, 16, 32, 64}, {14.4e3, 27.1e3, 47.9e3, 82.4e3, 124e3, 155e3, 158e3}};
static const Curve g_m4 = {
    1 / 8827.0, 6, {1, 4, 8, 16, 24, 48}, {8827, 33352, 61510, 89028, 109701, 115185}};

/* Mean error, percent, with the latency of one request and the most at the end of the curve. */
static double curve_error(const Curve *c, double exponent)
{
    double sum = 0;
    for (int i = 0; i < c->n; i++)
        sum += fabs(eng_knee_rate(c->outstanding[i], c->latency, c->rate[c->n - 1], exponent) /
                        c->rate[i] -
                    1);
    return 100 * sum / c->n;
}

/* Errors published for these curves, in percent. */
static void test_knee_of_drives(void **state)
{
    (void)state;
    assert_near(curve_error(&g_uring, INFINITY), 13.4, 0.2, "uring, hard");
    assert_near(curve_error(&g_uring, 1.5), 4.1, 0.2, "uring, 1.5");
    assert_near(curve_error(&g_uring, 2), 5.7, 0.2, "uring, 2");
    assert_near(curve_error(&g_uring, 2.5), 7.8, 0.2, "uring, 2.5");
    /* The published means of the M4 count a seventh point, at 64 threads, whose rate is not given;
     * each must lie above what the six give it. */
    static const double exponents[] = {INFINITY, 1.5, 2, 2.5}, published[] = {8.0, 8.0, 2.7, 2.9};
    for (int i = 0; i < 4; i++) {
        double six_of_seven = curve_error(&g_m4, exponents[i]) * 6 / 7;
        assert_near(published[i] - six_of_seven, 0.3, 0.35, "M4");
    }
    double worst = eng_knee_rate(16, g_m4.latency, 115185, INFINITY) / 89028 - 1;
    assert_near(100 * worst, 29, 0.5, "M4, worst of the hard minimum");
}

static void test_knee_laws(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 1);
    for (int i = 0; i < 2000; i++) {
        double latency = pow(10, -7 + 4 * eng_rng_unit(&rng));
        double most = pow(10, 4 + 5 * eng_rng_unit(&rng)), n = 1 + 1000 * eng_rng_unit(&rng);
        double exponent = 0.5 + 7 * eng_rng_unit(&rng), share = 0.05 + 0.9 * eng_rng_unit(&rng);
        double rate = eng_knee_rate(n, latency, most, exponent);
        assert_true(rate > 0 && rate <= n / latency && rate <= most);
        assert_true(rate <= eng_knee_rate(n, latency, most, exponent + 0.5));
        assert_true(rate <= eng_knee_rate(n + 1, latency, most, exponent));
        double enough = eng_knee_outstanding(latency, most, exponent, share);
        assert_near(eng_knee_rate(enough, latency, most, exponent), share * most, 1e-9 * most,
                    "requests for a share");
    }
}

/* ---- gather ---- */

/* Microseconds a layer, from the worked example of the notes on tiers: 128 tokens, 128 with a
 * verification window of 6, 4096 and 16384 tokens, 24 rows each. */
typedef struct Example {
    const char *name;
    double bandwidth, rate, latency, bytes; /* bytes of a row on the wire */
    double want[4];
} Example;

static const Example g_examples[] = {
    {"link between chips", 400e9, 0, 0.6e-6, 460.8, {4, 22, 114, 454}},
    {"PCIe 5", 53e9, 0, 1.5e-6, 460.8, {28, 162, 856, 3420}},
    {"CXL", 36e9, 0, 0.4e-6, 400, {35, 205, 1093, 4369}},
    {"RDMA, a read a row", 0, 45e6, 4e-6, 264, {72, 414, 2189, 8742}},
    {"NVMe, 2.5 M/s", 0, 2.5e6, 80e-6, 264, {1309, 7453, 39402, 157366}},
    {"NVMe, 155 k/s", 0, 155e3, 70e-6, 264, {19889, 118986, 634289, 2536947}},
};

static void test_worked_example(void **state)
{
    (void)state;
    static const double tokens[] = {128, 768, 4096, 16384};
    for (int e = 0; e < LENGTH(g_examples); e++)
        for (int i = 0; i < 4; i++) {
            EngErr err = {0};
            EngGather gather;
            EngTier tier = make_tier(g_examples[e].name);
            const EngTier *tiers[] = {&tier};
            EngRowLayout layout = {.value_bytes = g_examples[e].bytes, .value_stride = 264};
            if (g_examples[e].bandwidth) set(&tier, ENG_TIER_BANDWIDTH, g_examples[e].bandwidth);
            if (g_examples[e].rate) set(&tier, ENG_TIER_REQUEST_RATE, g_examples[e].rate);
            set(&tier, ENG_TIER_LATENCY, g_examples[e].latency);
            if (eng_gather_plan(tiers, 1, &layout, 24 * tokens[i], 0, &gather, &err))
                fail_msg("%s", err.text);
            assert_near(gather.time * 1e6, g_examples[e].want[i], 0.55, g_examples[e].name);
        }
}

/* Blocks a row touches: the facts' figures, and counting row by row. */
static void test_blocks(void **state)
{
    (void)state;
    EngRng rng;
    assert_near(eng_blocks_touched(264, 264, 64), 5, 0, "264 B in lines");
    assert_near(eng_blocks_touched(264, 264, 4096), 1.0625, 1e-12, "264 B in pages");
    assert_near(eng_blocks_touched(256, 256, 64), 4, 0, "256 B in lines");
    assert_near(eng_blocks_touched(8, 8, 64), 1, 0, "scales in lines");
    assert_near(eng_blocks_touched(256, 256, 4096), 1, 0, "256 B in pages");
    eng_rng_seed(&rng, 2);
    for (int i = 0; i < 200; i++) {
        int64_t granule = (int64_t)1 << (3 + eng_rng_below(&rng, 10));
        int64_t bytes = 1 + (int64_t)eng_rng_below(&rng, 600);
        int64_t stride = bytes + (int64_t)eng_rng_below(&rng, 64), blocks = 0;
        for (int64_t row = 0; row < granule; row++)
            blocks += (row * stride + bytes - 1) / granule - row * stride / granule + 1;
        assert_near(eng_blocks_touched((double)bytes, (double)stride, (double)granule),
                    (double)blocks / (double)granule, 1e-9, "blocks");
    }
    EngRowLayout packed = eng_row_layout(ENG_ROW_FP8_PACKED, 256);
    EngRowLayout split = eng_row_layout(ENG_ROW_FP8, 256);
    assert_near(packed.value_bytes, 264, 0, "packed");
    assert_near(packed.scale_bytes, 0, 0, "packed scales");
    assert_near(split.value_bytes + split.scale_bytes, 264, 0, "split");
}

/* A host's memory read over a link: the slower of the two, and both latencies. */
static void test_path_and_terms(void **state)
{
    (void)state;
    EngErr err = {0};
    EngGather gather;
    EngTier dram = make_tier("dram"), link = make_tier("pcie");
    const EngTier *path[] = {&dram, &link};
    EngRowLayout layout = eng_row_layout(ENG_ROW_FP8, 256);
    set(&dram, ENG_TIER_BANDWIDTH, 400e9);
    set(&dram, ENG_TIER_LATENCY, 100e-9);
    set(&dram, ENG_TIER_GRANULE, 64);
    set(&link, ENG_TIER_BANDWIDTH, 50e9);
    set(&link, ENG_TIER_LATENCY, 1e-6);
    set(&link, ENG_TIER_GRANULE, 128);
    assert_int_equal(eng_gather_plan(path, 2, &layout, 1e6, 5e-6, &gather, &err), ENG_OK);
    assert_int_equal(gather.slowest, 1);
    assert_near(gather.stages[0].requests, 5e6, 0, "lines");
    assert_near(gather.stages[1].requests, 3e6, 0, "link requests"); /* 2 of values, 1 of scales */
    assert_near(gather.time, 5e-6 + 3e6 * 128 / 50e9 + 1.1e-6, 1e-12, "path");
    /* 200 requests under way at 1 us are 200 M/s, less than 390 M/s of the bandwidth. */
    set(&link, ENG_TIER_OUTSTANDING, 200);
    assert_int_equal(eng_gather_plan(path, 2, &layout, 1e6, 0, &gather, &err), ENG_OK);
    assert_int_equal(gather.stages[1].binding, ENG_GATHER_OUTSTANDING);
    assert_true(gather.stages[1].hard);
    assert_string_equal(eng_gather_term_name(gather.stages[1].binding), "outstanding requests");
    assert_near(gather.stages[1].time, (3e6 - 200) / 200e6, 1e-12, "Little, behind the first 200");
    double hard = gather.time;
    set(&link, ENG_TIER_KNEE_EXPONENT, 2);
    assert_int_equal(eng_gather_plan(path, 2, &layout, 1e6, 0, &gather, &err), ENG_OK);
    assert_false(gather.stages[1].hard);
    assert_true(gather.time > hard && gather.time < hard * sqrt(2));
    /* A device that is fastest with 100 under way is given no more. */
    double soft = gather.time;
    set(&link, ENG_TIER_KNEE_OUTSTANDING, 100);
    assert_int_equal(eng_gather_plan(path, 2, &layout, 1e6, 0, &gather, &err), ENG_OK);
    assert_near(gather.stages[1].terms[ENG_GATHER_OUTSTANDING], (3e6 - 100) * 1e-6 / 100, 1e-12,
                "knee");
    assert_true(gather.time > soft);
    set(&link, ENG_TIER_KNEE_OUTSTANDING, 300);
    set(&link, ENG_TIER_REQUEST_OVERHEAD, 24);
    EngGather more;
    assert_int_equal(eng_gather_plan(path, 2, &layout, 1e6, 0, &more, &err), ENG_OK);
    assert_near(more.stages[1].bytes, 3e6 * 152, 0, "overhead");
    assert_int_equal(eng_gather_plan(path, 2, &layout, 0, 1, &gather, &err), ENG_OK);
    assert_near(gather.time, 0, 0, "nothing to gather");
}

/* Few reads: io_uring with O_DIRECT, 4 KiB each, a file of 0.1 GB; microseconds until the last is
 * there, medians of 41 samples (of two tables where there are two). One read takes 54.6 us; 384
 * with 128 under way had 90,300/s, and the exponent is that of the curve above. Reads that may all
 * be under way take one latency together, and not another for waiting. */
static void test_few_reads(void **state)
{
    (void)state;
    static const struct {
        double outstanding, reads, us;
    } measured[] = {{64, 1, 54.6},  {2, 2, 63.6},   {64, 2, 63.5},  {1, 4, 202.3},
                    {2, 4, 119.5},  {4, 4, 85.5},   {64, 4, 86.5},  {1, 8, 421.9},
                    {2, 8, 249.6},  {4, 8, 178.8},  {64, 8, 136.2}, {1, 16, 834.5},
                    {2, 16, 505.5}, {4, 16, 365.7}, {64, 16, 234.9}};
    EngErr err = {0};
    EngGather gather;
    EngTier drive = make_tier("nvme");
    const EngTier *path[] = {&drive};
    EngRowLayout layout = {.value_bytes = 4096, .value_stride = 4096};
    double sum = 0;
    set(&drive, ENG_TIER_REQUEST_RATE, 90300);
    set(&drive, ENG_TIER_LATENCY, 54.6e-6);
    set(&drive, ENG_TIER_KNEE_EXPONENT, 1.5);
    for (int i = 0; i < LENGTH(measured); i++) {
        set(&drive, ENG_TIER_OUTSTANDING, measured[i].outstanding);
        assert_int_equal(eng_gather_plan(path, 1, &layout, measured[i].reads, 0, &gather, &err),
                         ENG_OK);
        double off = gather.time * 1e6 / measured[i].us - 1;
        assert_true(fabs(off) < 0.22);
        sum += fabs(off);
    }
    assert_true(sum / LENGTH(measured) < 0.12);
    /* A queue that holds all: the latency, and what the drive takes for all of them. */
    set(&drive, ENG_TIER_OUTSTANDING, 256);
    set(&drive, ENG_TIER_REQUEST_RATE, 2.5e6);
    set(&drive, ENG_TIER_LATENCY, 80e-6);
    assert_int_equal(eng_gather_plan(path, 1, &layout, 24, 0, &gather, &err), ENG_OK);
    assert_near(gather.time, 80e-6 + 24 / 2.5e6, 1e-12, "24 reads on a queue of 256");
    assert_near(gather.stages[0].terms[ENG_GATHER_OUTSTANDING], 0, 0, "none waits for another");
    double before = 0;
    for (double reads = 1; reads < 1e5; reads *= 1.1) { /* longer with each, and without a step */
        assert_int_equal(eng_gather_plan(path, 1, &layout, reads, 0, &gather, &err), ENG_OK);
        assert_true(gather.time > before);
        if (before > 0) assert_true(gather.time < 1.25 * before);
        before = gather.time;
    }
}

/* What binds a tier is the longest of all its terms: of a hundred rows the latency. */
static void test_what_binds(void **state)
{
    (void)state;
    EngErr err = {0};
    EngGather gather;
    EngTier link = make_tier("nic");
    const EngTier *path[] = {&link};
    EngRowLayout layout = eng_row_layout(ENG_ROW_FP8, 256);
    static const struct {
        double rows;
        EngGatherTerm binds;
    } cases[] = {{100, ENG_GATHER_LATENCY}, {1000, ENG_GATHER_REQUEST_RATE}};
    set(&link, ENG_TIER_BANDWIDTH, 50e9);
    set(&link, ENG_TIER_REQUEST_RATE, 45e6);
    set(&link, ENG_TIER_LATENCY, 10e-6);
    for (int i = 0; i < LENGTH(cases); i++) {
        assert_int_equal(eng_gather_plan(path, 1, &layout, cases[i].rows, 0, &gather, &err),
                         ENG_OK);
        assert_int_equal(gather.stages[0].binding, cases[i].binds);
        assert_near(gather.stages[0].terms[ENG_GATHER_LATENCY], 10e-6, 0, "latency");
    }
    assert_string_equal(eng_gather_term_name(ENG_GATHER_LATENCY), "latency");
    assert_null(eng_gather_term_name(ENG_GATHER_COUNT));
}

/* Scales in memory: a drive reads a page a row, not two; what they pass afterwards carries both. */
static void test_scales_elsewhere(void **state)
{
    (void)state;
    EngErr err = {0};
    EngGather gather;
    EngTier drive = make_tier("nvme"), dram = make_tier("dram"), device = make_tier("hbm");
    EngTier *all[] = {&drive, &dram, &device};
    const EngTier *path[] = {&drive, &dram, &device};
    EngRowLayout layout = eng_row_layout(ENG_ROW_FP8, 256);
    for (int i = 0; i < LENGTH(all); i++) {
        set(all[i], ENG_TIER_REQUEST_RATE, 1e6);
        set(all[i], ENG_TIER_LATENCY, 1e-6);
        set(all[i], ENG_TIER_GRANULE, i ? 64 : 4096);
    }
    assert_int_equal(eng_gather_plan(path, 2, &layout, 1000, 0, &gather, &err), ENG_OK);
    assert_near(gather.stages[0].requests, 2000, 0, "pages of both");
    layout.scales = &dram;
    assert_int_equal(eng_gather_plan(path, 2, &layout, 1000, 0, &gather, &err), ENG_OK);
    assert_int_equal(gather.n_stages, 2);
    assert_near(gather.stages[0].requests, 1000, 0, "pages of values");
    assert_near(gather.stages[1].requests, 5000, 0, "lines of both");
    layout.scales = &device;
    assert_int_equal(eng_gather_plan(path, 2, &layout, 1000, 0, &gather, &err), ENG_OK);
    assert_int_equal(gather.n_stages, 3);
    assert_near(gather.stages[1].requests, 4000, 0, "lines of values");
    assert_near(gather.stages[2].requests, 1000, 0, "lines of scales");
    assert_near(gather.time, 4000 / 1e6 + 2e-6, 1e-12, "scales come meanwhile");
    /* Slower than the path with their latency, though not without it. */
    set(&device, ENG_TIER_LATENCY, 5e-3);
    assert_int_equal(eng_gather_plan(path, 2, &layout, 1000, 1e-6, &gather, &err), ENG_OK);
    assert_int_equal(gather.slowest, 2);
    assert_near(gather.time, 1e-6 + 1000 / 1e6 + 5e-3, 1e-12, "scales come later");
    set(&device, ENG_TIER_LATENCY, 1e-6);
    set(&device, ENG_TIER_REQUEST_RATE, 0.2e6);
    assert_int_equal(eng_gather_plan(path, 2, &layout, 1000, 0, &gather, &err), ENG_OK);
    assert_near(gather.time, 1000 / 0.2e6 + 1e-6, 1e-12, "without the path's latencies");
    set(&device, ENG_TIER_REQUEST_RATE, 1e6);
    /* Eight scales a row, of which those that read the device's memory need none. */
    layout = eng_row_layout(ENG_ROW_FP8, 256);
    layout.scale_rows = 8;
    layout.values_from = 2;
    assert_int_equal(eng_gather_plan(path, 3, &layout, 1000, 0, &gather, &err), ENG_OK);
    assert_near(gather.stages[1].requests, 12000, 0, "lines of values and eight scales");
    assert_near(gather.stages[2].requests, 4000, 0, "lines of values only");
    EngTier other = dram;
    layout.scales = &other;
    const EngTier *full[ENG_MAX_STAGES];
    for (int i = 0; i < ENG_MAX_STAGES; i++) full[i] = path[i % 3];
    assert_int_equal(eng_gather_plan(full, ENG_MAX_STAGES, &layout, 1000, 0, &gather, &err),
                     ENG_USAGE);
}

static void test_gather_refuses(void **state)
{
    (void)state;
    EngErr err = {0};
    EngGather gather;
    EngTier tier = make_tier("hbm");
    const EngTier *path[ENG_MAX_STAGES + 1];
    for (int i = 0; i <= ENG_MAX_STAGES; i++) path[i] = &tier;
    EngRowLayout layout = eng_row_layout(ENG_ROW_FP8, 256);
    assert_int_equal(eng_gather_plan(path, 1, &layout, 1, 0, &gather, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "latency"));
    set(&tier, ENG_TIER_LATENCY, 1e-6);
    assert_int_equal(eng_gather_plan(path, 1, &layout, 1, 0, &gather, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "bandwidth"));
    tier.fields[ENG_TIER_BANDWIDTH] = (EngQuantity){.value = 4.8e12, .origin = ENG_SPEC};
    assert_int_equal(eng_gather_plan(path, 1, &layout, 1, 0, &gather, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "efficiency"));
    set(&tier, ENG_TIER_EFFICIENCY, 0.5);
    assert_int_equal(eng_gather_plan(path, 1, &layout, 1, 0, &gather, &err), ENG_OK);
    assert_int_equal(eng_gather_plan(path, ENG_MAX_STAGES + 1, &layout, 1, 0, &gather, &err),
                     ENG_USAGE);
    assert_int_equal(eng_gather_plan(path, 0, &layout, 1, 0, &gather, &err), ENG_USAGE);
    assert_int_equal(eng_gather_plan(path, 1, &layout, -1, 0, &gather, &err), ENG_USAGE);
    assert_int_equal(eng_gather_plan(path, 1, &layout, NAN, 0, &gather, &err), ENG_USAGE);
}

/* ---- windows ---- */

static void test_stall_formula(void **state)
{
    (void)state;
    EngErr err = {0};
    EngRng rng;
    const EngSlowdowns none = {0, 0};
    eng_rng_seed(&rng, 3);
    for (int i = 0; i < 2000; i++) {
        double hash = eng_rng_below(&rng, 2) ? 0.1 * eng_rng_unit(&rng) : 0, added;
        EngQueuedFetch f[2] = {{.window = eng_rng_unit(&rng), .fetch = 2 * eng_rng_unit(&rng)}};
        f[1].window = f[0].window + eng_rng_unit(&rng);
        f[1].fetch = 2 * eng_rng_unit(&rng);
        assert_int_equal(eng_queue_stalls(f, 2, hash, &none, &added, &err), ENG_OK);
        double first = fmax(0, hash + f[0].fetch - f[0].window);
        double second = fmax(0, hash + f[0].fetch + f[1].fetch - f[1].window - first);
        assert_near(f[0].stall, first, 1e-9, "first stall");
        assert_near(f[1].stall, second, 1e-9, "second stall");
        assert_near(added, first + second, 1e-9, "step");
        /* Slower neighbours never make a step shorter. */
        EngSlowdowns some = {0.2 * eng_rng_unit(&rng), 0.2 * eng_rng_unit(&rng)};
        double slowed;
        assert_int_equal(eng_queue_stalls(f, 2, hash, &some, &slowed, &err), ENG_OK);
        assert_true(slowed >= added - 1e-9);
        assert_true(slowed <= added + 0.2 * (f[1].window + f[0].fetch + f[1].fetch) + 1e-9);
    }
}

/* Steps measured with a gather of 98,304 rows (alone 4.8 to 5.6 ms) beside a layer of 0.5, 2, 5 and
 * 20 ms: 5.7, 5.8, 5.7 and 20.0 ms. */
static void test_measured_overlap(void **state)
{
    (void)state;
    static const double layers[] = {0.5, 2, 5, 20}, steps[] = {5.7, 5.8, 5.7, 20.0};
    const EngSlowdowns beside = {.fetch = 0.1, .compute = 0};
    for (int i = 0; i < 4; i++) {
        EngErr err = {0};
        EngQueuedFetch f = {.window = layers[i], .fetch = 5.2};
        double added;
        assert_int_equal(eng_queue_stalls(&f, 1, 0, &beside, &added, &err), ENG_OK);
        assert_near((layers[i] + added) / steps[i], 1, 0.15, "measured step");
    }
    EngErr err = {0};
    EngQueuedFetch f = {.window = 0.5, .fetch = 1.1};
    const EngSlowdowns slow = {.fetch = 1, .compute = 0.5};
    double added;
    /* 0.75 s of layers beside 0.375 s of fetch, then 0.725 s of fetch alone. */
    assert_int_equal(eng_queue_stalls(&f, 1, 0, &slow, &added, &err), ENG_OK);
    assert_near(f.stall, 0.725, 1e-9, "stall");
    assert_near(added, 0.975, 1e-9, "step");
    assert_near(f.hidden, 1 - 0.725 / 1.1, 1e-9, "hidden");
}

static void test_windows(void **state)
{
    (void)state;
    EngErr err = {0};
    double layers[] = {1, 2, 3, 4}, window, added;
    assert_int_equal(eng_window(layers, 4, 0, 0.5, &window, &err), ENG_OK);
    assert_near(window, 0.5, 0, "layer 0");
    assert_int_equal(eng_window(layers, 4, 3, 0.5, &window, &err), ENG_OK);
    assert_near(window, 6.5, 0, "layer 3");
    assert_int_equal(eng_window(layers, 4, 4, 0, &window, &err), ENG_USAGE);
    assert_int_equal(eng_window(layers, 4, -1, 0, &window, &err), ENG_USAGE);
    assert_int_equal(eng_window(layers, 4, 1, -1, &window, &err), ENG_USAGE);
    layers[1] = -1;
    assert_int_equal(eng_window(layers, 4, 3, 0, &window, &err), ENG_USAGE);
    const EngSlowdowns none = {0, 0}, bad = {-1, 0};
    EngQueuedFetch back[] = {{.window = 2, .fetch = 1}, {.window = 1, .fetch = 1}};
    assert_int_equal(eng_queue_stalls(back, 2, 0, &none, &added, &err), ENG_USAGE);
    assert_int_equal(eng_queue_stalls(back, 1, 0, &bad, &added, &err), ENG_USAGE);
    assert_int_equal(eng_queue_stalls(back, 1, -1, &none, &added, &err), ENG_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_knee_of_drives),   cmocka_unit_test(test_knee_laws),
        cmocka_unit_test(test_worked_example),   cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_path_and_terms),   cmocka_unit_test(test_few_reads),
        cmocka_unit_test(test_what_binds),       cmocka_unit_test(test_scales_elsewhere),
        cmocka_unit_test(test_gather_refuses),   cmocka_unit_test(test_stall_formula),
        cmocka_unit_test(test_measured_overlap), cmocka_unit_test(test_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
