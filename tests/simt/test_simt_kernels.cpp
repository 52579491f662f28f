/* The CUDA kernels, run by the host executor, against the CPU oracles: hash in all modes, gather of
 * every row format, gate + write-back, at production widths (24 columns of 256, hidden 5120, four
 * streams) and 1 to 33 tokens; no fault may be reported in any order of threads and streams.
 */
#include "helpers.hpp"

extern "C" {
#include "base/mem.h"
#include "kernels/address/preset.h"
#include "kernels/ref/encode.h"
#include "kernels/ref/gate.h"
#include "kernels/ref/gather.h"
#include "kernels/ref/hash.h"
}

namespace
{
const int most_tokens = 33;
const uint8_t canary = 0xa5;

/* ---- hash ---- */

EngAddress address_of(const char *preset_name)
{
    EngPreset preset;
    EngAddress address;
    ok(eng_preset_find(preset_name, &preset, &g_err));
    ok(eng_address_build(&preset.address, &address, &g_err));
    return address;
}

/* Rows of a batch by the kernel; every place that it does not write holds the canary. */
std::vector<int64_t> device_hash(const EngAddress &address, const EngHashArgs &args, int number)
{
    EngCudaStream *stream = fresh_stream(number);
    EngCudaHash *hash;
    size_t n = (size_t)args.n_tokens * (size_t)(address.n_layers * address.n_columns);
    EngHashArgs on_device = args;
    std::vector<uint8_t> mark(n * sizeof(int64_t), canary);
    ok(eng_cuda_hash_create(&address, &hash, &g_err));
    on_device.tokens = upload(args.tokens, (size_t)args.n_tokens);
    if (args.starts) on_device.starts = upload(args.starts, (size_t)args.n_seqs + 1);
    if (args.history)
        on_device.history = upload(args.history, (size_t)(args.n_seqs * (address.max_order - 1)));
    on_device.rows = reinterpret_cast<int64_t *>(upload(mark));
    ok(eng_cuda_hash(hash, &on_device, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    std::vector<int64_t> rows = download(on_device.rows, n);
    eng_cuda_hash_destroy(hash);
    eng_cuda_stream_destroy(stream);
    no_faults("hash");
    return rows;
}

void check_hash(const EngAddress &address, EngHashArgs args, int number)
{
    size_t n = (size_t)args.n_tokens * (size_t)(address.n_layers * address.n_columns);
    std::vector<int64_t> want(n);
    memset(want.data(), canary, n * sizeof(int64_t));
    args.rows = want.data();
    eng_ref_hash(&address, &args);
    std::vector<int64_t> got = device_hash(address, args, number);
    assert_memory_equal(got.data(), want.data(), n * sizeof(int64_t));
}

std::vector<int32_t> random_ids(EngRng *rng, const EngAddress &address, size_t n)
{
    std::vector<int32_t> ids(n);
    for (int32_t &id : ids)
        id = eng_rng_below(rng, 8) ? (int32_t)eng_rng_below(rng, (uint64_t)address.vocab)
                                   : ENG_TOKEN_DEAD;
    return ids;
}

/* Prefill, one-token decode, ragged windows, packed documents with empty ones, padded tails. */
void test_hash_modes(void **)
{
    EngRng rng;
    int number = 0;
    eng_rng_seed(&rng, 7);
    for (const char *name : {"v41-flash", "engram-demo", "tiny"}) {
        EngAddress address = address_of(name);
        for (int n = 1; n <= most_tokens; n++) {
            std::vector<int32_t> ids = random_ids(&rng, address, (size_t)n);
            check_hash(address, {ids.data(), n, n, nullptr, 0, nullptr, nullptr}, number++);
            int64_t n_seqs = 1 + n % 5, reach = address.max_order - 1;
            std::vector<int64_t> starts((size_t)n_seqs + 1);
            for (size_t s = 1; s < starts.size(); s++)
                starts[s] =
                    starts[s - 1] + (int64_t)eng_rng_below(&rng, (uint64_t)(n - starts[s - 1]) + 1);
            std::vector<int32_t> history = random_ids(&rng, address, (size_t)(n_seqs * reach));
            int64_t n_live = n - n % 4;
            const int32_t *before = n % 3 ? history.data() : nullptr;
            check_hash(address, {ids.data(), n, n_live, starts.data(), n_seqs, before, nullptr},
                       number++);
            std::vector<int64_t> ones; /* decode: n sequences of one token each */
            for (int64_t s = 0; s <= n; s++) ones.push_back(s);
            history = random_ids(&rng, address, (size_t)(n * reach));
            check_hash(address, {ids.data(), n, n, ones.data(), n, history.data(), nullptr},
                       number++);
        }
    }
}

void test_hash_long(void **)
{
    EngRng rng;
    eng_rng_seed(&rng, 8);
    EngAddress address = address_of("v41-flash");
    std::vector<int32_t> ids = random_ids(&rng, address, 1000);
    check_hash(address, {ids.data(), 1000, 1000, nullptr, 0, nullptr, nullptr}, 2);
}

/* ---- gather ---- */

struct HostTable {
    EngTable table;
    std::vector<uint8_t> values, scales;
};

/* Random bytes: every code, scale 0 and NaN included. */
HostTable random_table(EngRng *rng, EngRowFormat format, int row_dims, int64_t rows)
{
    HostTable t;
    t.values.resize((size_t)rows * eng_row_stride_bytes(format, row_dims));
    t.scales.resize((size_t)rows * eng_row_scale_bytes(format, row_dims));
    for (uint8_t &byte : t.values) byte = (uint8_t)eng_rng_u64(rng);
    for (uint8_t &byte : t.scales) byte = (uint8_t)eng_rng_u64(rng);
    t.table = {format, row_dims, rows, t.values.data(),
               t.scales.empty() ? nullptr : t.scales.data()};
    return t;
}

EngTable upload_table(const HostTable &host)
{
    EngTable table = host.table;
    table.values = upload(host.values);
    if (table.scales) table.scales = upload(host.scales);
    return table;
}

struct GatherCase {
    EngRowFormat format;
    EngDtype out;
    int row_dims, columns;
    int64_t tokens, row_stride;
    EngCudaGrid grid;
};

void check_gather(const GatherCase &c, int number)
{
    EngRng rng;
    const int64_t n_rows = 61;
    eng_rng_seed(&rng, (uint64_t)number);
    HostTable host = random_table(&rng, c.format, c.row_dims, n_rows);
    EngGatherProblem problem = {host.table, c.columns, c.tokens, c.out};
    std::vector<int64_t> rows((size_t)(c.tokens * c.row_stride));
    for (int64_t &row : rows) row = (int64_t)eng_rng_below(&rng, n_rows);
    rows[0] = n_rows - 1;
    size_t n = (size_t)(c.tokens * c.columns) * (size_t)c.row_dims;
    std::vector<uint8_t> want(eng_dtype_bytes(c.out, n)), want_scales(n / 32 + 1);
    EngGatherArgs args = {rows.data(), c.row_stride, want.data(), want_scales.data()};
    eng_ref_gather(&problem, &args);

    EngCudaStream *stream = fresh_stream(number);
    problem.table = upload_table(host);
    uint8_t *out = static_cast<uint8_t *>(allocate(want.size()));
    uint8_t *out_scales = static_cast<uint8_t *>(allocate(n / 32));
    EngGatherArgs on_device = {upload(rows), c.row_stride, out, out_scales};
    ok(eng_cuda_gather(&problem, &on_device, c.grid, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    std::vector<uint8_t> got = download(out, want.size());
    no_faults(eng_row_format_name(c.format));
    EngComparison residual;
    eng_compare_bits(&residual, c.out, got.data(), want.data(), (int64_t)n);
    if (residual.verdict != ENG_RESIDUAL_PASS)
        fail_msg("%s to %s, %d dims: element %lld is %.9g, want %.9g",
                 eng_row_format_name(c.format), eng_dtype_name(c.out), c.row_dims,
                 (long long)residual.worst, residual.got, residual.want);
    if (c.out == ENG_FP8) {
        std::vector<uint8_t> got_scales = download(out_scales, n / 32);
        assert_memory_equal(got_scales.data(), want_scales.data(), n / 32);
    }
    no_faults("gather: results");
    eng_cuda_stream_destroy(stream);
}

template <class F> void for_formats(F body)
{
    for (int format = 0; format < ENG_ROW_FORMAT_COUNT; format++)
        for (EngDtype out : {ENG_BF16, ENG_F32, ENG_FP8})
            if (out != ENG_FP8 || eng_row_is_fp8((EngRowFormat)format))
                body((EngRowFormat)format, out);
}

void test_gather_production(void **)
{
    int number = 0;
    for_formats([&](EngRowFormat format, EngDtype out) {
        for (int tokens = 1; tokens <= most_tokens; tokens++)
            check_gather({format, out, 256, 24, tokens, 24, {0, 0}}, number++);
    });
}

/* Widths that force narrow loads, layers of a hash output, and every way to cut the work. */
void test_gather_shapes(void **)
{
    static const EngCudaGrid grids[] = {{1, 1},  {2, 3},  {3, 1000},
                                        {16, 2}, {64, 1}, {2, ENG_CUDA_HALF_GRID}};
    int number = 0;
    for_formats([&](EngRowFormat format, EngDtype out) {
        for (int dims : {32, 64, 96, 160}) {
            for (const EngCudaGrid &grid : grids)
                check_gather({format, out, dims, 5, 7, 5, grid}, number++);
            check_gather({format, out, dims, 8, 9, 21, {0, 0}}, number++);
        }
        if (!eng_row_has_groups(format)) {
            check_gather({format, out, 37, 3, 11, 3, {0, 0}}, number++);
            check_gather({format, out, 1, 3, 11, 3, {0, 0}}, number++);
        }
    });
}

/* Tables and outputs that begin anywhere an element may. */
void test_gather_alignment(void **)
{
    const int columns = 3, dims = 64;
    const int64_t tokens = 4, n_rows = 19;
    EngRng rng;
    int number = 0;
    eng_rng_seed(&rng, 12);
    for_formats([&](EngRowFormat format, EngDtype out) {
        for (size_t table_off : {0, 1, 2, 4, 8})
            for (size_t out_off : {0, 1, 2, 4, 8}) {
                HostTable host = random_table(&rng, format, dims, n_rows);
                std::vector<int64_t> rows(tokens * columns);
                for (int64_t &row : rows) row = (int64_t)eng_rng_below(&rng, n_rows);
                size_t n = rows.size() * dims;
                std::vector<uint8_t> want(eng_dtype_bytes(out, n)), scales(n / 32);
                EngGatherProblem problem = {host.table, columns, tokens, out};
                EngGatherArgs args = {rows.data(), columns, want.data(), scales.data()};
                eng_ref_gather(&problem, &args);
                EngCudaStream *stream = fresh_stream(number++);
                problem.table.values = upload_off(host.values, table_off);
                if (problem.table.scales) problem.table.scales = upload(host.scales);
                uint8_t *there = static_cast<uint8_t *>(allocate(want.size() + out_off)) + out_off;
                uint8_t *scales_there = static_cast<uint8_t *>(allocate(scales.size()));
                args = {upload(rows), columns, there, scales_there};
                EngStatus status = eng_cuda_gather(&problem, &args, {0, 0}, stream, &g_err);
                ok(eng_cuda_wait(stream, &g_err));
                no_faults(eng_row_format_name(format));
                if (status) assert_int_equal(status, ENG_UNSUPPORTED);
                if (!out_off && table_off % 4 == 0) ok(status); /* else right, or refused */
                if (!status) {
                    EngComparison residual;
                    eng_compare_bits(&residual, out, download(there, want.size()).data(),
                                     want.data(), (int64_t)n);
                    assert_residual(residual, eng_row_format_name(format));
                }
                eng_cuda_stream_destroy(stream);
            }
    });
}

/* A whole layer's table, of which a row before and rows beyond 4 GB exist. */
void test_gather_far(void **)
{
    const int64_t n_rows = 70000000, rows[] = {3, 16777216 + 3, 33554432, n_rows - 1};
    EngCudaStream *stream = fresh_stream(1);
    EngTable table = {ENG_ROW_FP8, 256, n_rows, nullptr, nullptr};
    uint8_t *values = static_cast<uint8_t *>(allocate((size_t)n_rows * 256));
    uint8_t *scales = static_cast<uint8_t *>(allocate((size_t)n_rows * 8));
    table.values = values, table.scales = scales;
    for (int i = 0; i < 4; i++) {
        uint8_t codes[256], exponents[8];
        memset(codes, 0x38, sizeof codes);
        memset(exponents, 127 + i, sizeof exponents);
        copy_in(values + rows[i] * 256, codes, sizeof codes);
        copy_in(scales + rows[i] * 8, exponents, sizeof exponents);
    }
    float *out = static_cast<float *>(allocate(4 * 256 * sizeof(float)));
    EngGatherProblem problem = {table, 2, 2, ENG_F32};
    EngGatherArgs args = {upload(rows, 4), 2, out, nullptr};
    ok(eng_cuda_gather(&problem, &args, {0, 0}, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    std::vector<float> got = download(out, 4 * 256);
    no_faults("far rows");
    for (int i = 0; i < 4 * 256; i++) assert_true(got[(size_t)i] == (float)(1 << i / 256));
    eng_cuda_stream_destroy(stream);
}

void test_gather_refuses(void **)
{
    EngCudaStream *stream = fresh_stream(1);
    EngTable table = {ENG_ROW_FP8, 48, 4, static_cast<uint8_t *>(allocate(4096)),
                      static_cast<uint8_t *>(allocate(64))};
    EngGatherProblem problem = {table, 2, 2, ENG_BF16};
    int64_t rows[4] = {0};
    EngGatherArgs args = {upload(rows, 4), 2, allocate(4096), nullptr};
    assert_int_equal(eng_cuda_gather(&problem, &args, {0, 0}, stream, &g_err), ENG_UNSUPPORTED);
    problem.table.row_dims = 32, problem.out = ENG_FP8;
    assert_int_equal(eng_cuda_gather(&problem, &args, {0, 0}, stream, &g_err), ENG_UNSUPPORTED);
    problem.out = ENG_BF16, problem.tokens = INT64_C(1) << 40;
    assert_int_equal(eng_cuda_gather(&problem, &args, {0, 0}, stream, &g_err), ENG_UNSUPPORTED);
    problem.tokens = 0;
    ok(eng_cuda_gather(&problem, &args, {0, 0}, stream, &g_err));
    no_faults("refusals");
    eng_cuda_stream_destroy(stream);
}

/* ---- gate ---- */

void check_gate(int64_t tokens, int streams, int hidden, EngGateFormula formula, int number)
{
    EngRng rng;
    eng_rng_seed(&rng, (uint64_t)number);
    size_t t = (size_t)tokens, s = (size_t)streams, h = (size_t)hidden;
    std::vector<uint16_t> q = random_bf16(&rng, s * h, 1), k = random_bf16(&rng, s * h, 1);
    std::vector<uint16_t> x = random_bf16(&rng, t * s * h, 2);
    std::vector<uint16_t> kv = random_bf16(&rng, t * (s + 1) * h, 0.7);
    std::vector<uint8_t> dead(t);
    for (size_t i = 0; i < t; i++) dead[i] = i % 5 == 3;
    if (t > 3) x[3 * s * h] = 0x7fc1; /* a masked token keeps even the payload of a NaN */

    EngCudaStream *stream = fresh_stream(number);
    EngGateProblem problem = {tokens, streams, hidden, formula, 1e-20f, upload(q), upload(k)};
    uint16_t *in = upload(x), *out = in;
    bool in_place = number % 2, with_gates = number % 3 != 1;
    if (!in_place) out = static_cast<uint16_t *>(allocate(2 * x.size()));
    float *gates = static_cast<float *>(allocate(t * s * sizeof(float)));
    float *scores = static_cast<float *>(allocate(t * s * sizeof(float)));
    EngGateArgs args = {in,
                        out,
                        upload(kv),
                        upload(dead),
                        with_gates ? gates : nullptr,
                        with_gates ? scores : nullptr};
    ok(eng_cuda_gate(&problem, &args, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    std::vector<uint16_t> got = download(out, x.size());
    std::vector<float> got_gates, got_scores;
    if (with_gates) got_gates = download(gates, t * s), got_scores = download(scores, t * s);
    no_faults("gate");
    eng_cuda_stream_destroy(stream);

    problem.q_weight = q.data(), problem.k_weight = k.data();
    args = {x.data(),
            got.data(),
            kv.data(),
            dead.data(),
            with_gates ? got_gates.data() : nullptr,
            with_gates ? got_scores.data() : nullptr};
    EngComparison outs, gate_residual, score_residual;
    eng_residual_start(&outs), eng_residual_start(&gate_residual);
    eng_residual_start(&score_residual);
    for (int64_t i = 0; i < tokens; i++)
        eng_ref_gate_check_token(&problem, &args, i, &outs, &gate_residual, &score_residual);
    assert_residual(score_residual, "score");
    assert_residual(gate_residual, "gate");
    assert_residual(outs, "stream");
    assert_int_equal(outs.count > 0, 1);
}

void test_gate_production(void **)
{
    for (int tokens = 1; tokens <= most_tokens; tokens++)
        check_gate(tokens, 4, 5120, (EngGateFormula)(tokens % ENG_GATE_FORMULA_COUNT), tokens);
}

/* Each buffer in turn at an odd place, and one of the two outputs alone. */
void test_gate_places(void **)
{
    const int64_t tokens = 3;
    const int streams = 2, hidden = 64;
    EngRng rng;
    eng_rng_seed(&rng, 31);
    size_t width = (size_t)(streams * hidden), n = (size_t)tokens * width;
    std::vector<uint16_t> q = random_bf16(&rng, width, 1), k = random_bf16(&rng, width, 1);
    std::vector<uint16_t> x = random_bf16(&rng, n, 2);
    std::vector<uint16_t> kv = random_bf16(&rng, n + (size_t)(tokens * hidden), 0.7);
    std::vector<float> none((size_t)(tokens * streams), -7.0f);
    for (int odd = 0; odd < 6; odd++) {
        EngCudaStream *stream = fresh_stream(odd);
        auto off = [odd](int which) { return odd == which ? (size_t)2 : (size_t)0; };
        EngGateProblem problem = {tokens,
                                  streams,
                                  hidden,
                                  ENG_GATE_COPYSIGN,
                                  1e-20f,
                                  upload_off(q, off(1)),
                                  upload_off(k, off(2))};
        uint16_t *out = upload_off(x, off(3));
        float *gates = upload(none), *scores = upload(none);
        EngGateArgs args = {upload_off(x, off(4)),     out,
                            upload_off(kv, off(5)),    nullptr,
                            odd % 2 ? gates : nullptr, odd % 2 ? nullptr : scores};
        ok(eng_cuda_gate(&problem, &args, stream, &g_err));
        ok(eng_cuda_wait(stream, &g_err));
        no_faults("gate at odd places");
        std::vector<uint16_t> got = download(out, n);
        std::vector<float> got_gates = download(gates, none.size());
        std::vector<float> got_scores = download(scores, none.size());
        problem.q_weight = q.data(), problem.k_weight = k.data();
        args = {x.data(),
                got.data(),
                kv.data(),
                nullptr,
                odd % 2 ? got_gates.data() : nullptr,
                odd % 2 ? nullptr : got_scores.data()};
        EngComparison outs, gate_residual, score_residual;
        eng_residual_start(&outs), eng_residual_start(&gate_residual);
        eng_residual_start(&score_residual);
        for (int64_t t = 0; t < tokens; t++)
            eng_ref_gate_check_token(&problem, &args, t, &outs, odd % 2 ? &gate_residual : nullptr,
                                     odd % 2 ? nullptr : &score_residual);
        assert_residual(outs, "stream");
        assert_residual(odd % 2 ? gate_residual : score_residual, "gate or score");
        assert_true((odd % 2 ? got_scores : got_gates) == none);
        eng_cuda_stream_destroy(stream);
    }
}

void test_gate_shapes(void **)
{
    int number = 0;
    for (int hidden : {1, 4, 8, 31, 32, 33, 257, 640, 1024, 5128, 6000})
        for (int formula = 0; formula < ENG_GATE_FORMULA_COUNT; formula++)
            check_gate(1 + number % 6, 1 + number % 4, hidden, (EngGateFormula)formula, number),
                number++;
}

/* ---- the variants of the registry ---- */

void test_variants(void **)
{
    EngAddress address = address_of("tiny");
    EngRng rng;
    EngProblem problem = {};
    EngArgs args = {};
    eng_rng_seed(&rng, 5);
    fresh_device(1);
    const int32_t ids[3] = {1, 5, 9};
    size_t per_token = (size_t)(address.n_layers * address.n_columns);
    int64_t want_rows[3 * ENG_MAX_LAYERS * 8];
    int64_t *rows = static_cast<int64_t *>(allocate(3 * per_token * sizeof(int64_t)));
    problem.op = ENG_OP_HASH, problem.u.hash = {&address, 3};
    args.u.hash = {upload(ids, 3), 3, 3, nullptr, 0, nullptr, rows};
    run_variant(ENG_OP_HASH, "cuda_reciprocal", problem, args);
    EngHashArgs oracle = {ids, 3, 3, nullptr, 0, nullptr, want_rows};
    eng_ref_hash(&address, &oracle);
    assert_memory_equal(download(rows, 3 * per_token).data(), want_rows,
                        3 * per_token * sizeof(int64_t));

    HostTable host = random_table(&rng, ENG_ROW_INT4, 64, address.rows[0]);
    float want[3 * 8 * 64], *out = static_cast<float *>(allocate(sizeof want));
    size_t n = (size_t)(3 * address.n_columns * 64);
    problem = {}, args = {};
    problem.op = ENG_OP_GATHER, problem.tuned[0] = 4, problem.tuned[1] = 1;
    problem.u.gather = {upload_table(host), address.n_columns, 3, ENG_F32};
    args.u.gather = {rows, (int64_t)per_token, out, nullptr};
    run_variant(ENG_OP_GATHER, "cuda_decode", problem, args);
    EngGatherProblem on_host = {host.table, address.n_columns, 3, ENG_F32};
    EngGatherArgs gather = {want_rows, (int64_t)per_token, want, nullptr};
    eng_ref_gather(&on_host, &gather);
    EngComparison residual;
    eng_compare_bits(&residual, ENG_F32, download(out, n).data(), want, (int64_t)n);
    assert_residual(residual, "cuda_decode");

    std::vector<uint16_t> weights = random_bf16(&rng, 64, 1), x = random_bf16(&rng, 3 * 64, 1);
    std::vector<uint16_t> kv = random_bf16(&rng, 3 * 96, 1);
    problem = {}, args = {};
    problem.op = ENG_OP_GATE;
    problem.u.gate = {3, 2, 32, ENG_GATE_SIGN, 1e-20f, upload(weights), upload(weights)};
    uint16_t *streams = upload(x);
    args.u.gate = {streams, streams, upload(kv), nullptr, nullptr, nullptr};
    run_variant(ENG_OP_GATE, "cuda_onepass", problem, args);
    std::vector<uint16_t> got = download(streams, x.size());
    EngGateProblem gate = {3, 2, 32, ENG_GATE_SIGN, 1e-20f, weights.data(), weights.data()};
    EngGateArgs gate_args = {x.data(), got.data(), kv.data(), nullptr, nullptr, nullptr};
    eng_residual_start(&residual);
    for (int t = 0; t < 3; t++)
        eng_ref_gate_check_token(&gate, &gate_args, t, &residual, nullptr, nullptr);
    assert_residual(residual, "cuda_onepass");
}

/* Host memory where the device's is wanted is an error of the caller, not of the device. */
void test_variants_refuse_host_memory(void **)
{
    EngRng rng;
    EngProblem problem = {};
    void *state = nullptr;
    eng_rng_seed(&rng, 5);
    fresh_device(1);
    HostTable host = random_table(&rng, ENG_ROW_FP8, 64, 9);
    problem.op = ENG_OP_GATHER, problem.u.gather = {host.table, 2, 2, ENG_F32};
    const EngKernel *kernel = eng_kernel_find(ENG_OP_GATHER, "cuda_decode");
    assert_int_equal(kernel->create(&problem, &state, &g_err), ENG_USAGE);
    assert_non_null(strstr(g_err.text, "the table"));
    problem.u.gather.table = upload_table(host);
    ok(kernel->create(&problem, &state, &g_err));
    int64_t rows[4] = {0};
    float out[2 * 2 * 64];
    EngArgs args = {};
    args.u.gather = {rows, 2, out, nullptr};
    assert_int_equal(kernel->run(state, &problem, &args, &g_err), ENG_USAGE);
    kernel->destroy(state);
    no_faults("refusals");
}

/* ---- a step as serving runs it ---- */

/* Hash on the main stream; the rows fetched by a side stream from a pinned table; joined, captured
 * and replayed with new tokens: every schedule gives the same rows. */
void replay(simt::Options options)
{
    const int tokens = 5, dims = 64, replays = 3;
    EngAddress address = address_of("tiny");
    EngRng rng;
    eng_rng_seed(&rng, options.seed);
    begin_case(options);
    EngCudaStream *main, *side;
    EngCudaHash *hash;
    ok(eng_cuda_stream_create(&main, &g_err));
    ok(eng_cuda_stream_create(&side, &g_err));
    ok(eng_cuda_hash_create(&address, &hash, &g_err));
    cudaEvent_t fork, join;
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);

    HostTable host = random_table(&rng, ENG_ROW_FP8_PACKED, dims, address.rows[1]);
    size_t per_token = (size_t)(address.n_layers * address.n_columns);
    size_t n = (size_t)(tokens * address.n_columns * dims);
    void *pinned_table = pinned(host.values.size()), *pinned_out = pinned(2 * n);
    void *pinned_ids = pinned(tokens * sizeof(int32_t));
    memcpy(pinned_table, host.values.data(), host.values.size());
    int32_t *ids = static_cast<int32_t *>(allocate(tokens * sizeof(int32_t)));
    int64_t *rows = static_cast<int64_t *>(allocate(tokens * per_token * sizeof(int64_t)));
    void *out = allocate(2 * n);
    EngTable table = host.table;
    table.values = static_cast<uint8_t *>(pinned_table);
    EngGatherProblem problem = {table, address.n_columns, tokens, ENG_BF16};
    EngGatherArgs gather = {rows + address.n_columns, (int64_t)per_token, out, nullptr};
    EngHashArgs batch = {ids, tokens, tokens, nullptr, 0, nullptr, rows};

    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal);
    cudaMemcpyAsync(ids, pinned_ids, tokens * sizeof(int32_t), cudaMemcpyHostToDevice, main);
    ok(eng_cuda_hash(hash, &batch, main, &g_err));
    cudaEventRecord(fork, main);
    cudaStreamWaitEvent(side, fork, 0);
    ok(eng_cuda_gather(&problem, &gather, {4, 1}, side, &g_err));
    cudaMemcpyAsync(pinned_out, out, 2 * n, cudaMemcpyDeviceToHost, side);
    cudaEventRecord(join, side);
    cudaStreamWaitEvent(main, join, 0);
    assert_int_equal(cudaStreamEndCapture(main, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);

    for (int i = 0; i < replays; i++) {
        std::vector<int32_t> now = random_ids(&rng, address, tokens);
        std::vector<int64_t> want_rows(tokens * per_token);
        std::vector<uint16_t> want(n), got(n);
        memcpy(pinned_ids, now.data(), tokens * sizeof(int32_t));
        cudaGraphLaunch(exec, main);
        ok(eng_cuda_wait(main, &g_err));
        memcpy(got.data(), pinned_out, 2 * n);
        EngHashArgs oracle = {now.data(), tokens, tokens, nullptr, 0, nullptr, want_rows.data()};
        eng_ref_hash(&address, &oracle);
        EngGatherProblem on_host = {host.table, address.n_columns, tokens, ENG_BF16};
        EngGatherArgs args = {want_rows.data() + address.n_columns, (int64_t)per_token, want.data(),
                              nullptr};
        eng_ref_gather(&on_host, &args);
        EngComparison residual;
        eng_compare_bits(&residual, ENG_BF16, got.data(), want.data(), (int64_t)n);
        assert_residual(residual, "replay");
    }
    no_faults("replay");
    cudaGraphExecDestroy(exec), cudaGraphDestroy(graph);
    cudaEventDestroy(fork), cudaEventDestroy(join);
    eng_cuda_hash_destroy(hash);
    eng_cuda_stream_destroy(main), eng_cuda_stream_destroy(side);
}

void test_replay(void **)
{
    for (simt::Policy policy :
         {simt::Policy::lazy, simt::Policy::random, simt::Policy::priority, simt::Policy::eager})
        for (uint64_t seed = 1; seed <= 10; seed++) replay({simt::Order::random, policy, seed});
}
} // namespace

int main(void)
{
    const CMUnitTest tests[] = {
        CASES(test_hash_modes),
        CASES(test_hash_long),
        CASES(test_gather_production),
        CASES(test_gather_shapes),
        CASES(test_gather_alignment),
        CASES(test_gather_far),
        CASES(test_gather_refuses),
        CASES(test_gate_production),
        CASES(test_gate_shapes),
        CASES(test_gate_places),
        CASES(test_variants),
        CASES(test_variants_refuse_host_memory),
        CASES(test_replay),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
