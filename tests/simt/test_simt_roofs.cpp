/* Roofs on the host executor: they store every byte of the output, and read every byte that the
 * operation reads. What a roof does not read would make it a limit that nobody can reach.
 */
#include "helpers.hpp"

namespace
{
const int64_t table_rows = 61;

/* ---- gather: its loads are in what it stores ---- */

struct Case {
    EngRowFormat format;
    EngDtype out;
    int dims, columns;
    int64_t tokens, row_stride;
    EngCudaGrid grid;
    bool deep;
};

/* What the roof makes of a row: each load as often as it takes, its scale's first byte in the first
 * word of each store. */
std::vector<uint8_t> wanted_row(const Case &c, const uint8_t *values, const uint8_t *scales)
{
    bool int4 = c.format == ENG_ROW_INT4, groups = eng_row_has_groups(c.format);
    size_t dims = (size_t)c.dims, out_bytes = eng_dtype_bytes(c.out, dims);
    size_t row = int4                       ? dims / 2
                 : c.format == ENG_ROW_BF16 ? 2 * dims
                 : c.format == ENG_ROW_F32  ? 4 * dims
                                            : dims;
    size_t load = (eng_row_stride_bytes(c.format, c.dims) | row) % 16 ? 8 : 16;
    size_t each = out_bytes / (row / load), piece = each % 16 ? 8 : 16;
    std::vector<uint8_t> want;
    for (size_t at = 0; at < row; at += load)
        for (size_t s = 0; s < each; s += piece) {
            size_t first = want.size();
            for (size_t i = 0; i < piece; i++) want.push_back(values[at + i % load]);
            if (groups) want[first] ^= scales[int4 ? at / 16 * 2 : at / 32];
        }
    return want;
}

void check_rows(const Case &c, int number)
{
    EngRng rng;
    eng_rng_seed(&rng, (uint64_t)number);
    size_t stride = eng_row_stride_bytes(c.format, c.dims);
    size_t scale = eng_row_scale_bytes(c.format, c.dims);
    std::vector<uint8_t> values(stride * table_rows), scales(scale * table_rows);
    for (uint8_t &byte : values) byte = (uint8_t)eng_rng_u64(&rng);
    for (uint8_t &byte : scales) byte = (uint8_t)eng_rng_u64(&rng);
    std::vector<int64_t> rows((size_t)(c.tokens * c.row_stride));
    for (int64_t &row : rows) row = (int64_t)eng_rng_below(&rng, table_rows);

    EngCudaStream *stream = fresh_stream(number);
    EngTable table = {c.format, c.dims, table_rows, upload(values), nullptr};
    if (scale) table.scales = upload(scales);
    EngGatherProblem problem = {table, c.columns, c.tokens, c.out};
    size_t slots = (size_t)(c.tokens * c.columns), dims = (size_t)c.dims;
    size_t out_bytes = eng_dtype_bytes(c.out, dims);
    uint8_t *out = static_cast<uint8_t *>(allocate(slots * out_bytes));
    uint8_t *out_scales = static_cast<uint8_t *>(allocate(slots * dims / 32));
    EngGatherArgs args = {upload(rows), c.row_stride, out, out_scales};
    ok(eng_cuda_gather_roof_fits(&problem, &g_err));
    ok(eng_cuda_gather_roof(&problem, &args, c.grid, c.deep, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    std::vector<uint8_t> got = download(out, slots * out_bytes), got_scales;
    if (c.out == ENG_FP8) got_scales = download(out_scales, slots * dims / 32);
    no_faults(eng_row_format_name(c.format));
    for (size_t slot = 0; slot < slots; slot++) {
        size_t token = slot / (size_t)c.columns, column = slot % (size_t)c.columns;
        size_t row = (size_t)rows[token * (size_t)c.row_stride + column];
        const uint8_t *its = scale ? &scales[row * scale]
                                   : &values[row * stride + eng_row_scale_offset(c.format, c.dims)];
        std::vector<uint8_t> want = wanted_row(c, &values[row * stride], its);
        assert_int_equal(want.size(), out_bytes);
        assert_memory_equal(&got[slot * out_bytes], want.data(), out_bytes);
        if (c.out == ENG_FP8) assert_memory_equal(&got_scales[slot * dims / 32], its, dims / 32);
    }
    eng_cuda_stream_destroy(stream);
}

void test_gather(void **)
{
    int number = 0;
    for (int format = 0; format < ENG_ROW_FORMAT_COUNT; format++)
        for (EngDtype out : {ENG_BF16, ENG_F32, ENG_FP8}) {
            if (out == ENG_FP8 && !eng_row_is_fp8((EngRowFormat)format)) continue;
            for (bool deep : {false, true}) {
                Case c = {(EngRowFormat)format, out, 256, 24, 5, 24, {2, 0}, deep};
                check_rows(c, number++);
                c.columns = 5, c.tokens = 33, c.row_stride = 11, c.grid = {16, 3};
                check_rows(c, number++);
            }
        }
}

void test_gather_refuses(void **)
{
    EngCudaStream *stream = fresh_stream(1);
    EngTable table = {ENG_ROW_FP8_PACKED, 32, 4, static_cast<uint8_t *>(allocate(4096)), nullptr};
    EngGatherProblem problem = {table, 2, 2, ENG_BF16};
    assert_int_equal(eng_cuda_gather_roof_fits(&problem, &g_err), ENG_UNSUPPORTED);
    problem.table.format = ENG_ROW_BF16, problem.table.row_dims = 37;
    assert_int_equal(eng_cuda_gather_roof_fits(&problem, &g_err), ENG_UNSUPPORTED);
    problem.table.row_dims = 1;
    assert_int_equal(eng_cuda_gather_roof_fits(&problem, &g_err), ENG_UNSUPPORTED);
    problem.table.row_dims = 64, problem.tokens = INT64_C(1) << 40;
    assert_int_equal(eng_cuda_gather_roof_fits(&problem, &g_err), ENG_UNSUPPORTED);
    problem.tokens = 2;
    EngGatherArgs args = {static_cast<int64_t *>(allocate(64)), 2,
                          static_cast<uint8_t *>(allocate(4096)) + 4, nullptr};
    assert_int_equal(eng_cuda_gather_roof(&problem, &args, {2, 0}, false, stream, &g_err),
                     ENG_UNSUPPORTED);
    no_faults("refusals");
    eng_cuda_stream_destroy(stream);
}

/* ---- gate and project: a word that nobody wrote is found when it is read ---- */

/* `bytes` of device memory, written but for 16 bytes at `hole` (below 0: all). */
uint8_t *with_hole(size_t bytes, int64_t hole)
{
    uint8_t *at = static_cast<uint8_t *>(allocate(bytes));
    std::vector<uint8_t> content(bytes, 0x3c);
    size_t first = hole < 0 ? bytes : (size_t)hole, behind = hole < 0 ? bytes : first + 16;
    copy_in(at, content.data(), first);
    if (behind < bytes) copy_in(at + behind, content.data(), bytes - behind);
    return at;
}

typedef void (*Run)(EngCudaStream *stream, int buffer, int64_t hole);

void run_case(Run run, int number, int buffer, int64_t hole)
{
    EngCudaStream *stream = fresh_stream(number);
    run(stream, buffer, hole);
    eng_cuda_stream_destroy(stream);
}

/* Every buffer whole is no fault; a hole anywhere in any is one. */
void check_reads(Run run, const std::vector<size_t> &sizes)
{
    EngRng rng;
    eng_rng_seed(&rng, 3);
    run_case(run, 0, -1, -1);
    no_faults("whole buffers");
    for (int buffer = 0; buffer < (int)sizes.size(); buffer++) {
        int64_t words = (int64_t)(sizes[(size_t)buffer] / 16);
        for (int i = 0; i < 12; i++) {
            int64_t word = i == 0   ? 0
                           : i == 1 ? words - 1
                                    : (int64_t)eng_rng_below(&rng, (uint64_t)words);
            run_case(run, i, buffer, 16 * word);
            if (!simt::faults() || simt::fault(0) != simt::Fault::uninitialised)
                fail_msg("buffer %d: word %lld of %lld is not read", buffer, (long long)word,
                         (long long)words);
        }
    }
}

const int streams = 4, hidden = 640, gate_tokens = 33;
const size_t state_bytes = 2u * gate_tokens * streams * hidden;
const size_t kv_bytes = 2u * gate_tokens * (streams + 1) * hidden;

void run_gate(EngCudaStream *stream, int buffer, int64_t hole)
{
    uint8_t *states = with_hole(state_bytes, buffer == 0 ? hole : -1);
    uint8_t *kv = with_hole(kv_bytes, buffer == 1 ? hole : -1);
    EngGateProblem problem = {};
    EngGateArgs args = {};
    problem.tokens = gate_tokens, problem.streams = streams, problem.hidden = hidden;
    args.streams_in = args.streams_out = reinterpret_cast<uint16_t *>(states);
    args.kv = reinterpret_cast<uint16_t *>(kv);
    ok(eng_cuda_gate_roof(&problem, &args, stream, &g_err));
    (void)eng_cuda_wait(stream, nullptr);
}

/* Apart too, and streams keep their bits. */
void test_gate(void **)
{
    EngRng rng;
    eng_rng_seed(&rng, 4);
    check_reads(run_gate, {state_bytes, kv_bytes});
    EngCudaStream *stream = fresh_stream(2);
    std::vector<uint16_t> states = random_bf16(&rng, state_bytes / 2, 1);
    uint16_t *out = static_cast<uint16_t *>(allocate(state_bytes));
    EngGateProblem problem = {};
    EngGateArgs args = {};
    problem.tokens = gate_tokens, problem.streams = streams, problem.hidden = hidden;
    args.streams_in = upload(states), args.streams_out = out;
    args.kv = reinterpret_cast<uint16_t *>(with_hole(kv_bytes, -1));
    ok(eng_cuda_gate_roof(&problem, &args, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    assert_memory_equal(download(out, state_bytes / 2).data(), states.data(), state_bytes);
    no_faults("gate");
    problem.hidden = 37;
    assert_int_equal(eng_cuda_gate_roof(&problem, &args, stream, &g_err), ENG_UNSUPPORTED);
    eng_cuda_stream_destroy(stream);
}

const int n = 256, k = 512, tokens = 8;
const size_t x_bytes = tokens * k, w_bytes = n * k, w_scale_bytes = n / 32 * (k / 32);
const size_t out_bytes = 2 * tokens * n;

void run_project(EngCudaStream *stream, int buffer, int64_t hole)
{
    EngProjectProblem problem = {};
    EngProjectArgs args = {};
    problem.tokens = tokens, problem.n = n, problem.k = k;
    problem.x = problem.weights = ENG_FP8, problem.out = ENG_BF16;
    problem.w = with_hole(w_bytes, buffer == 0 ? hole : -1);
    problem.w_scales = with_hole(w_scale_bytes, buffer == 1 ? hole : -1);
    args.x = with_hole(x_bytes, buffer == 2 ? hole : -1);
    args.out = allocate(out_bytes);
    ok(eng_cuda_project_roof(&problem, &args, stream, &g_err));
    (void)eng_cuda_wait(stream, nullptr);
    if (buffer < 0) (void)download(static_cast<uint8_t *>(args.out), out_bytes); /* all written */
}

void test_project(void **)
{
    check_reads(run_project, {w_bytes, w_scale_bytes, x_bytes});
}
} // namespace

int main(void)
{
    const CMUnitTest tests[] = {
        CASES(test_gather),
        CASES(test_gather_refuses),
        CASES(test_gate),
        CASES(test_project),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
