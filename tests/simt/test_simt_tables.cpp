/* Table content made by kernels is that of the host, also at the end of a layer of true size
 * (384,006,168 rows, 94.4 GiB, of which pages exist where they are written); gathers that the host
 * packs rows for; and histograms, whose counts are the host's.
 */
#include "helpers.hpp"

#include <cmath>

extern "C" {
#include "kernels/ref/gather.h"
#include "kernels/store/content.h"
}

namespace
{
const uint64_t seed = 11;

/* A table of device memory, with 0xff in what is not written. */
EngTable new_table(EngRowFormat format, int row_dims, int64_t rows)
{
    EngTable table = {format, row_dims, rows, nullptr, nullptr};
    size_t values = (size_t)rows * eng_row_stride_bytes(format, row_dims);
    size_t scales = (size_t)rows * eng_row_scale_bytes(format, row_dims);
    table.values = static_cast<uint8_t *>(allocate(values));
    if (scales) table.scales = static_cast<uint8_t *>(allocate(scales));
    return table;
}

/* The host's bytes from `at` on, whatever `at` is. */
std::vector<uint8_t> host_bytes(const EngContent &content, int row_dims, bool scales, uint64_t at,
                                size_t n)
{
    uint64_t from = at / ENG_CONTENT_CHUNK_BYTES * ENG_CONTENT_CHUNK_BYTES;
    std::vector<uint8_t> bytes((size_t)(at - from) + n);
    if (scales) {
        eng_content_scales(&content, from, bytes.size(), bytes.data());
    } else {
        eng_content_values(&content, from, bytes.size(), bytes.data());
        eng_content_row_scales(&content, row_dims, from, bytes.size(), bytes.data());
    }
    bytes.erase(bytes.begin(), bytes.begin() + (long)(at - from));
    return bytes;
}

void check_bytes(const EngContent &content, const EngTable &table, bool scales, int64_t first,
                 int64_t rows)
{
    uint64_t stride = scales ? eng_row_scale_bytes(table.format, table.row_dims)
                             : eng_row_stride_bytes(table.format, table.row_dims);
    uint64_t at = (uint64_t)first * stride;
    size_t n = (size_t)rows * stride;
    std::vector<uint8_t> want = host_bytes(content, table.row_dims, scales, at, n);
    std::vector<uint8_t> got = download((scales ? table.scales : table.values) + at, n);
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("%s, %s: byte %zu of row %lld on is %02x, want %02x",
                     eng_row_format_name(table.format), scales ? "scales" : "values", i,
                     (long long)first, got[i], want[i]);
}

void fill(const EngTable &table, int64_t first, int64_t rows, const EngContent &content,
          EngCudaStream *stream)
{
    const float *quantiles = content.quantiles ? upload(content.quantiles, 65537) : nullptr;
    ok(eng_cuda_fill(&table, first, rows, content.seed, quantiles, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    no_faults("fill");
}

void check_fill(EngRowFormat format, int row_dims, int64_t table_rows, int64_t first, int64_t rows,
                int number)
{
    EngContent content;
    ok(eng_content_create(&content, format, seed + (uint64_t)number, &g_err));
    EngCudaStream *stream = fresh_stream(number);
    EngTable table = new_table(format, row_dims, table_rows);
    fill(table, first, rows, content, stream);
    check_bytes(content, table, false, first, rows);
    if (table.scales) check_bytes(content, table, true, first, rows);
    eng_cuda_stream_destroy(stream);
    eng_content_destroy(&content);
}

/* Whole tables, and parts that begin and end inside random streams: nothing beside them is
 * written, since it would be out of bounds or read as unwritten. */
void test_fill_formats(void **)
{
    int number = 0;
    for (int format = 0; format < ENG_ROW_FORMAT_COUNT; format++) {
        check_fill((EngRowFormat)format, 256, 700, 0, 700, number++);
        check_fill((EngRowFormat)format, 64, 5003, 4090, 13, number++);
        check_fill((EngRowFormat)format, 32, 5000, 4096, 904, number++);
    }
    check_fill(ENG_ROW_FP8_PACKED, 32 * 300, 9, 2, 7, number++); /* more scales than one draw */
    check_fill(ENG_ROW_FP8, 256, 9, 5, 0, number++);
}

/* What lies beside the rows stays as it was, in every format. */
void test_fill_keeps_to_its_rows(void **)
{
    const size_t all = 100, first = 33, end = 43;
    for (int format = 0; format < ENG_ROW_FORMAT_COUNT; format++) {
        EngContent content;
        ok(eng_content_create(&content, (EngRowFormat)format, seed, &g_err));
        EngCudaStream *stream = fresh_stream(format);
        EngTable table = new_table((EngRowFormat)format, 32, all);
        size_t stride = eng_row_stride_bytes(table.format, 32), scale_bytes = table.scales ? 1 : 0;
        cudaMemset(const_cast<uint8_t *>(table.values), 0xa5, all * stride);
        if (table.scales) cudaMemset(const_cast<uint8_t *>(table.scales), 0xa5, all);
        cudaStreamSynchronize(cudaStreamLegacy);
        fill(table, first, end - first, content, stream);
        std::vector<uint8_t> values = download(table.values, all * stride),
                             scales = download(table.scales, all * scale_bytes);
        for (size_t i = 0; i < values.size(); i++)
            if (i < first * stride || i >= end * stride) assert_int_equal(values[i], 0xa5);
        for (size_t i = 0; i < scales.size(); i++)
            if (i < first || i >= end) assert_int_equal(scales[i], 0xa5);
        check_bytes(content, table, false, first, end - first);
        eng_cuda_stream_destroy(stream);
        eng_content_destroy(&content);
    }
}

/* The end of a layer, filled and gathered: no offset is taken in 32 bits. */
void test_true_size(void **)
{
    const int64_t all = 384006168, some = 1000, tokens = 3, columns = 24;
    EngRng rng;
    eng_rng_seed(&rng, 3);
    for (EngRowFormat format : {ENG_ROW_FP8, ENG_ROW_FP8_PACKED}) {
        EngContent content;
        ok(eng_content_create(&content, format, seed, &g_err));
        EngCudaStream *stream = fresh_stream(4);
        EngTable table = new_table(format, 256, all);
        fill(table, 0, some, content, stream);
        fill(table, all - some, some, content, stream);
        check_bytes(content, table, false, all - some, some);
        if (table.scales) check_bytes(content, table, true, all - some, some);

        std::vector<int64_t> rows(tokens * columns), near;
        for (int64_t &row : rows) {
            row = (int64_t)eng_rng_below(&rng, 2 * some);
            near.push_back(row);
            if (row >= some) row += all - 2 * some;
        }
        std::vector<uint8_t> values, scales;
        for (int64_t first : {(int64_t)0, all - some}) {
            uint64_t stride = eng_row_stride_bytes(format, 256);
            for (uint8_t byte :
                 host_bytes(content, 256, false, (uint64_t)first * stride, (size_t)some * stride))
                values.push_back(byte);
            if (table.scales)
                for (uint8_t byte : host_bytes(content, 256, true, (uint64_t)first * 8, some * 8))
                    scales.push_back(byte);
        }
        EngTable small = {format, 256, 2 * some, values.data(),
                          scales.empty() ? nullptr : scales.data()};
        size_t n = (size_t)(tokens * columns) * 256;
        std::vector<uint16_t> want(n);
        EngGatherProblem on_host = {small, (int)columns, tokens, ENG_BF16};
        EngGatherArgs host_args = {near.data(), columns, want.data(), nullptr};
        eng_ref_gather(&on_host, &host_args);
        void *out = allocate(2 * n);
        EngGatherProblem problem = {table, (int)columns, tokens, ENG_BF16};
        EngGatherArgs args = {upload(rows), columns, out, nullptr};
        ok(eng_cuda_gather(&problem, &args, {0, 0}, stream, &g_err));
        ok(eng_cuda_wait(stream, &g_err));
        std::vector<uint16_t> got = download(static_cast<uint16_t *>(out), n);
        no_faults("true size");
        assert_memory_equal(got.data(), want.data(), 2 * n);
        eng_cuda_stream_destroy(stream);
    }
}

void test_fill_refuses(void **)
{
    EngCudaStream *stream = fresh_stream(1);
    EngTable table = new_table(ENG_ROW_F32, 32, 10);
    assert_int_equal(eng_cuda_fill(&table, 5, 6, 1, nullptr, stream, &g_err), ENG_USAGE);
    assert_int_equal(eng_cuda_fill(&table, 0, 10, 1, nullptr, stream, &g_err), ENG_USAGE);
    assert_int_equal(eng_cuda_fill(&table, -1, 1, 1, nullptr, stream, &g_err), ENG_USAGE);
    no_faults("refusals");
    eng_cuda_stream_destroy(stream);
}

/* ---- staged copies ---- */

struct HostTable {
    EngTable table;
    std::vector<uint8_t> values, scales;
};

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

/* Into the stream, or by a graph that is waited for, since the next pack cannot. */
void send(EngCudaStaged *staged, const EngGatherArgs &args, bool captured, EngCudaStream *stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    if (!captured) return ok(eng_cuda_staged_send(staged, &args, {0, 0}, stream, &g_err));
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    ok(eng_cuda_staged_send(staged, &args, {2, ENG_CUDA_HALF_GRID}, stream, &g_err));
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, stream);
    ok(eng_cuda_wait(stream, &g_err));
    cudaGraphExecDestroy(exec), cudaGraphDestroy(graph);
}

/* Batch after batch without a wait between them: the host may not pack over what is still being
 * copied. */
void check_staged(EngRowFormat format, EngDtype out_type, int number)
{
    const int columns = 5, dims = 64;
    const int64_t tokens = 7, stride = 9, n_rows = 41;
    EngRng rng;
    eng_rng_seed(&rng, (uint64_t)number);
    HostTable host = random_table(&rng, format, dims, n_rows);
    EngCudaStream *stream = fresh_stream(number);
    EngCudaStaged *staged;
    EngGatherProblem problem = {host.table, columns, tokens, out_type};
    ok(eng_cuda_staged_create(&problem, &staged, &g_err));
    size_t n = (size_t)(tokens * columns) * dims, bytes = eng_dtype_bytes(out_type, n);
    std::vector<uint8_t> want[3], want_scales[3];
    uint8_t *out[3], *out_scales[3];
    for (int batch = 0; batch < 3; batch++) {
        std::vector<int64_t> rows((size_t)(tokens * stride));
        for (int64_t &row : rows) row = (int64_t)eng_rng_below(&rng, n_rows);
        want[batch].resize(bytes), want_scales[batch].resize(n / 32);
        EngGatherArgs args = {rows.data(), stride, want[batch].data(), want_scales[batch].data()};
        eng_ref_gather(&problem, &args);
        out[batch] = static_cast<uint8_t *>(allocate(bytes));
        out_scales[batch] = static_cast<uint8_t *>(allocate(n / 32));
        args = {nullptr, 0, out[batch], out_scales[batch]};
        ok(eng_cuda_staged_pack(staged, rows.data(), stride, &g_err));
        send(staged, args, batch == 1, stream);
    }
    ok(eng_cuda_wait(stream, &g_err));
    for (int batch = 0; batch < 3; batch++) {
        EngComparison residual;
        eng_compare_bits(&residual, out_type, download(out[batch], bytes).data(),
                         want[batch].data(), (int64_t)n);
        assert_residual(residual, eng_row_format_name(format));
        if (out_type == ENG_FP8)
            assert_memory_equal(download(out_scales[batch], n / 32).data(),
                                want_scales[batch].data(), n / 32);
    }
    no_faults("staged");
    eng_cuda_staged_destroy(staged);
    eng_cuda_stream_destroy(stream);
}

void test_staged(void **)
{
    int number = 0;
    for (int round = 0; round < 4; round++)
        for (int format = 0; format < ENG_ROW_FORMAT_COUNT; format++)
            for (EngDtype out : {ENG_BF16, ENG_F32, ENG_FP8})
                if (out != ENG_FP8 || eng_row_is_fp8((EngRowFormat)format))
                    check_staged((EngRowFormat)format, out, number++);
}

void test_staged_refuses(void **)
{
    EngCudaStaged *staged = nullptr;
    fresh_device(1);
    EngGatherProblem problem = {new_table(ENG_ROW_FP8, 64, 9), 2, 2, ENG_BF16};
    assert_int_equal(eng_cuda_staged_create(&problem, &staged, &g_err), ENG_UNSUPPORTED);
    assert_null(staged);
    no_faults("refusals");
}

/* Gathers of the registry: from device memory, and from pinned memory as it lies or packed. */
void test_gather_variants(void **)
{
    const int columns = 3, dims = 64;
    const int64_t tokens = 4;
    EngRng rng;
    eng_rng_seed(&rng, 9);
    for (const char *name : {"cuda_decode", "cuda_background", "cuda_staged"})
        for (int64_t stride : {3, 6}) {
            HostTable host = random_table(&rng, ENG_ROW_FP8, dims, 23);
            fresh_device(2);
            void *pinned_values = pinned(host.values.size());
            void *pinned_scales = pinned(host.scales.size());
            memcpy(pinned_values, host.values.data(), host.values.size());
            memcpy(pinned_scales, host.scales.data(), host.scales.size());
            std::vector<int64_t> rows((size_t)(tokens * stride));
            for (int64_t &row : rows) row = (int64_t)eng_rng_below(&rng, 23);
            size_t n = (size_t)(tokens * columns) * dims;
            std::vector<uint16_t> want(n);
            EngProblem problem = {};
            EngArgs args = {};
            problem.op = ENG_OP_GATHER;
            problem.u.gather = {host.table, columns, tokens, ENG_BF16};
            args.u.gather = {rows.data(), stride, want.data(), nullptr};
            eng_ref_gather(&problem.u.gather, &args.u.gather);
            problem.u.gather.table.values = static_cast<uint8_t *>(pinned_values);
            problem.u.gather.table.scales = static_cast<uint8_t *>(pinned_scales);
            void *out = allocate(2 * n);
            args.u.gather = {upload(rows), stride, out, nullptr};
            run_variant(ENG_OP_GATHER, name, problem, args);
            EngComparison residual;
            eng_compare_bits(&residual, ENG_BF16, download(static_cast<uint16_t *>(out), n).data(),
                             want.data(), (int64_t)n);
            assert_residual(residual, name);
        }
}

/* ---- histograms ---- */

/* The host's: bench/experiments/support.h. */
int bin(double x, double lo, double hi, int n)
{
    double at = floor((x - lo) / (hi - lo) * n);
    return !(at >= 0) ? 0 : at >= n ? n - 1 : (int)at;
}

int gate_bin(float gate)
{
    return bin(gate, 0, 1, 80);
}

double signed_log(double x)
{
    return copysign(log10(1 + 100 * fabs(x)), x);
}

int score_bin(float score)
{
    return bin(signed_log(score), -signed_log(100), signed_log(100), 80);
}

/* More values than the largest grid has threads. */
void check_histogram(int (*bin_of)(float), const std::vector<float> &values, int streams)
{
    float edges[79];
    int64_t tokens = (int64_t)values.size() / streams;
    std::vector<int64_t> want((size_t)streams * 80, 2), start = want;
    for (size_t i = 0; i < values.size(); i++)
        want[i % (size_t)streams * 80 + (size_t)bin_of(values[i])]++;
    eng_cuda_histogram_edges(bin_of, 80, edges);
    for (int i = 0; i < 79; i++) {
        assert_int_equal(bin_of(edges[i]), i + 1);
        assert_int_equal(bin_of(nextafterf(edges[i], -INFINITY)), i);
    }
    EngCudaStream *stream = fresh_stream(streams);
    int64_t *counts = upload(start);
    ok(eng_cuda_histogram(upload(values), tokens, streams, upload(edges, 79), 80, counts, stream,
                          &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    std::vector<int64_t> got = download(counts, want.size());
    no_faults("histogram");
    assert_memory_equal(got.data(), want.data(), want.size() * sizeof(int64_t));
    eng_cuda_stream_destroy(stream);
}

void test_histograms(void **)
{
    EngRng rng;
    eng_rng_seed(&rng, 5);
    for (int streams : {1, 4}) {
        std::vector<float> gates, scores;
        for (int i = 0; i < 17000; i++) {
            gates.push_back((float)eng_rng_unit(&rng));
            scores.push_back((float)(eng_rng_normal(&rng) * pow(10, 4 * eng_rng_unit(&rng) - 3)));
        }
        for (int i = 0; i <= 80; i++) gates[(size_t)i] = (float)i / 80; /* the edges themselves */
        gates[100] = -0.0f, gates[101] = NAN, gates[102] = INFINITY, gates[103] = -1;
        scores[0] = 0, scores[1] = -0.0f, scores[2] = 1e30f, scores[3] = -INFINITY, scores[4] = NAN;
        check_histogram(gate_bin, gates, streams);
        check_histogram(score_bin, scores, streams);
    }
}

/* Bins that no value reaches have no edge. */
void test_edges_out_of_reach(void **)
{
    float edges[3];
    eng_cuda_histogram_edges([](float value) { return value >= 2 ? 2 : 0; }, 4, edges);
    assert_true(edges[0] == 2 && edges[1] == 2 && edges[2] != edges[2]);
}
} // namespace

int main(void)
{
    const CMUnitTest tests[] = {
        CASES(test_fill_formats),
        CASES(test_fill_keeps_to_its_rows),
        CASES(test_true_size),
        CASES(test_fill_refuses),
        CASES(test_staged),
        CASES(test_staged_refuses),
        CASES(test_gather_variants),
        CASES(test_histograms),
        CASES(test_edges_out_of_reach),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
