/* The projections on the host executor against the oracle in double precision: mma.sync for up to
 * 16 tokens, cuBLASLt (a stand-in) for any, every type, shapes that leave parts of steps and tiles
 * over, k cut among blocks; and the whole 25600 x 6144 matrix once at 1 and at 16 tokens.
 */
#include "helpers.hpp"

#include <cmath>

#include <cublasLt.h>

extern "C" {
#include "kernels/ref/project.h"
}

namespace
{
/* Codes without NaN, and scales between 2^-7 and 2^4, as the host's tests have them. */
void random_fp8(EngRng *rng, std::vector<uint8_t> *codes, std::vector<uint8_t> *scales)
{
    for (uint8_t &code : *codes) do
            code = (uint8_t)eng_rng_u64(rng);
        while ((code & 0x7f) == 0x7f);
    for (uint8_t &scale : *scales) scale = (uint8_t)(120 + eng_rng_below(rng, 12));
}

struct Data { /* of a product, on the host */
    EngProjectProblem problem;
    std::vector<uint8_t> x, x_scales, w, w_scales;
};

void random_operand(EngRng *rng, EngDtype type, size_t n, size_t n_scales,
                    std::vector<uint8_t> *values, std::vector<uint8_t> *scales)
{
    values->resize(eng_dtype_bytes(type, n));
    if (type == ENG_FP8) {
        scales->resize(n_scales);
        random_fp8(rng, values, scales);
    } else {
        std::vector<uint16_t> wide = random_bf16(rng, n, 0.5);
        if (n) memcpy(values->data(), wide.data(), 2 * n);
    }
}

Data random_data(EngDtype x, EngDtype w, EngDtype out, int64_t tokens, int n, int k, uint64_t seed)
{
    EngRng rng;
    eng_rng_seed(&rng, seed);
    Data d;
    size_t m = (size_t)tokens, nn = (size_t)n, kk = (size_t)k;
    random_operand(&rng, w, nn * kk, nn / 32 * (kk / 32), &d.w, &d.w_scales);
    random_operand(&rng, x, m * kk, m * (kk / 32), &d.x, &d.x_scales);
    d.problem = {tokens, n, k, x, w, out, d.w.data(), w == ENG_FP8 ? d.w_scales.data() : nullptr};
    return d;
}

/* Whatever projects: out is the device's, [tokens, n]. */
typedef void (*Projector)(const EngProjectProblem &problem, const EngProjectArgs &args, int tuned,
                          EngCudaStream *stream);

void by_mma(const EngProjectProblem &problem, const EngProjectArgs &args, int splits,
            EngCudaStream *stream)
{
    EngCudaProject *project;
    ok(eng_cuda_project_create(&problem, splits, &project, &g_err));
    ok(eng_cuda_project(project, &args, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    eng_cuda_project_destroy(project);
}

void by_blas(const EngProjectProblem &problem, const EngProjectArgs &args, int,
             EngCudaStream *stream)
{
    EngCudaBlas *blas;
    ok(eng_cuda_blas_create(&problem, stream, &blas, &g_err));
    size_t bytes = problem.weights == ENG_FP8 ? 2 * (size_t)problem.n * (size_t)problem.k : 0;
    if (problem.tokens) assert_int_equal(eng_cuda_blas_expansion(blas).bytes, bytes);
    for (int time = 0; time < 2; time++) /* the second time with what the first left behind */
        ok(eng_cuda_blas_project(blas, &args, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    eng_cuda_blas_destroy(blas);
}

double element(const EngProjectProblem &problem, const std::vector<uint8_t> &out, size_t i)
{
    if (problem.out == ENG_BF16) {
        uint16_t bits;
        memcpy(&bits, out.data() + 2 * i, sizeof bits);
        return eng_ref_bf16(bits);
    }
    float value;
    memcpy(&value, out.data() + 4 * i, sizeof value);
    return value;
}

std::vector<uint8_t> project(const Data &d, Projector projector, int tuned, int number)
{
    simt::Options options = {(simt::Order)(number % 3), (simt::Policy)(number % 4),
                             (uint64_t)number + 1};
    options.most_shadowed = 64 << 20; /* the whole matrix is looked at for bounds alone */
    begin_case(options);
    EngCudaStream *stream;
    ok(eng_cuda_stream_create(&stream, &g_err));
    EngProjectProblem problem = d.problem;
    problem.w = upload(d.w);
    if (problem.w_scales) problem.w_scales = upload(d.w_scales);
    size_t bytes = eng_dtype_bytes(problem.out, (size_t)(problem.tokens * problem.n));
    EngProjectArgs args = {upload(d.x), problem.x == ENG_FP8 ? upload(d.x_scales) : nullptr,
                           allocate(bytes)};
    projector(problem, args, tuned, stream);
    std::vector<uint8_t> out = download(static_cast<uint8_t *>(args.out), bytes);
    no_faults("project");
    eng_cuda_stream_destroy(stream);
    return out;
}

/* Every stride-th output. */
void compare(const Data &d, const std::vector<uint8_t> &out, size_t stride, const char *what)
{
    const EngProjectProblem &p = d.problem;
    EngProjectArgs args = {d.x.data(), d.x_scales.data(), nullptr};
    EngComparison residual;
    eng_residual_start(&residual);
    for (size_t i = 0; i < (size_t)(p.tokens * p.n); i += stride) {
        double want, abs_sum;
        eng_ref_project_at(&p, &args, (int64_t)(i / (size_t)p.n), (int)(i % (size_t)p.n), &want,
                           &abs_sum);
        eng_residual_add(&residual, p.out, element(p, out, i), want,
                         eng_limit_sum(p.out, want, p.k, abs_sum));
    }
    if (residual.verdict != ENG_RESIDUAL_PASS)
        print_error("%lld tokens of %d x %d, x %s\n", (long long)p.tokens, p.n, p.k,
                    eng_dtype_name(p.x));
    assert_residual(residual, what);
}

void check(Projector projector, EngDtype x, EngDtype out, int64_t tokens, int n, int k, int tuned,
           int number)
{
    Data d = random_data(x, ENG_FP8, out, tokens, n, k, (uint64_t)number);
    compare(d, project(d, projector, tuned, number), 1, "project");
}

void test_mma_shapes(void **)
{
    int number = 0;
    for (int tokens = 1; tokens <= 16; tokens++)
        for (EngDtype x : {ENG_FP8, ENG_BF16})
            check(by_mma, x, tokens % 2 ? ENG_BF16 : ENG_F32, tokens, 64, 6144, 0, number++);
    for (int k : {32, 64, 96, 160, 416, 1024})
        for (int splits : {0, 1, 2, 3, 32})
            check(by_mma, splits % 2 ? ENG_FP8 : ENG_BF16, splits < 3 ? ENG_F32 : ENG_BF16,
                  1 + number % 16, 32 * (1 + number % 3), k, splits, number),
                number++;
}

/* The layout of scale tiles by hand, as on the host: row 33, column 40 use tile (1, 1) of 2 x 2. */
void test_mma_tile_of_a_scale(void **)
{
    Data d = random_data(ENG_FP8, ENG_FP8, ENG_F32, 1, 64, 64, 1);
    std::fill(d.w.begin(), d.w.end(), (uint8_t)0), std::fill(d.x.begin(), d.x.end(), (uint8_t)0);
    d.w_scales = {127, 128, 129, 130}, d.x_scales = {127, 126};
    d.w[33 * 64 + 40] = 0x3c; /* 1.5, times 2^3 in tile (1, 1) */
    d.w[2 * 64 + 40] = 0x38;  /* 1, times 2 in tile (0, 1) */
    d.w[33 * 64 + 1] = 0x38;  /* 1, times 4 in tile (1, 0) */
    d.x[40] = 0x40;           /* 2, times 1/2 */
    d.x[1] = 0x38;
    d.problem.w_scales = d.w_scales.data();
    std::vector<uint8_t> out = project(d, by_mma, 0, 1);
    for (size_t j = 0; j < 64; j++)
        assert_true(element(d.problem, out, j) == (j == 33 ? 12 + 4 : j == 2 ? 2 : 0));
}

/* The ends of the range of scales that the variant promises, by one product each. */
void test_mma_range_of_scales(void **)
{
    const struct {
        int scales[2];
        uint8_t x, w; /* the least or the largest code, 2^-9 and 448 */
    } ends[] = {{{-58, -59}, 0x01, 0x7e}, {{60, 59}, 0x7e, 0x01}};
    for (const auto &end : ends) {
        Data d = random_data(ENG_FP8, ENG_FP8, ENG_F32, 1, 32, 32, 1);
        std::fill(d.w.begin(), d.w.end(), (uint8_t)0);
        std::fill(d.x.begin(), d.x.end(), (uint8_t)0);
        d.x_scales = {(uint8_t)(127 + end.scales[0])};
        d.w_scales = {(uint8_t)(127 + end.scales[1])};
        d.x[7] = end.x, d.w[3 * 32 + 7] = end.w;
        d.problem.w_scales = d.w_scales.data();
        std::vector<uint8_t> out = project(d, by_mma, 0, 1);
        for (size_t j = 0; j < 32; j++)
            assert_true(element(d.problem, out, j) ==
                        (j == 3 ? ldexp(448, end.scales[0] + end.scales[1] - 9) : 0));
    }
}

/* A NaN stays where it belongs: of a weight in its row, of a token in its token, of a tile's scale
 * in the tile's rows; the code 0 with the smallest scale is 0. */
void test_mma_nonfinite(void **)
{
    for (EngDtype x : {ENG_FP8, ENG_BF16}) {
        Data d = random_data(x, ENG_FP8, ENG_F32, 12, 96, 160, 9);
        d.w[5 * 160 + 77] = 0x7f, d.w[40 * 160 + 159] = 0xff;
        d.w_scales[2 * 5 + 1] = 255, d.w_scales[3] = 0;
        if (x == ENG_FP8) {
            d.x[3 * 160 + 32] = 0xff, d.x_scales[11 * 5 + 4] = 255;
        } else {
            const uint16_t infinite = 0x7f80, nan = 0xffc1;
            memcpy(&d.x[2 * (3 * 160 + 32)], &infinite, 2);
            memcpy(&d.x[2 * (11 * 160 + 159)], &nan, 2);
        }
        compare(d, project(d, by_mma, 2, 3), 1, "not a number");
    }
}

/* Bits depend neither on the order of threads nor on how many tokens ride along in a group. */
void test_mma_bits(void **)
{
    Data d = random_data(ENG_FP8, ENG_FP8, ENG_F32, 8, 64, 544, 21);
    std::vector<uint8_t> first = project(d, by_mma, 3, 0);
    for (int number = 1; number < 6; number++)
        assert_memory_equal(project(d, by_mma, 3, number).data(), first.data(), first.size());
    d.problem.tokens = 5;
    assert_memory_equal(project(d, by_mma, 3, 2).data(), first.data(), 5 * 64 * 4);
}

void test_mma_refuses(void **)
{
    Data d = random_data(ENG_FP8, ENG_FP8, ENG_F32, 2, 64, 64, 1);
    EngCudaProject *project = nullptr;
    fresh_device(1);
    for (int which = 0; which < 4; which++) {
        EngProjectProblem problem = d.problem;
        if (which == 0) problem.tokens = 17;
        if (which == 1) problem.n = 48;
        if (which == 2) problem.k = 48;
        if (which == 3) problem.weights = ENG_BF16;
        assert_int_equal(eng_cuda_project_fits(&problem, &g_err), ENG_UNSUPPORTED);
        assert_int_equal(eng_cuda_project_create(&problem, 0, &project, &g_err), ENG_UNSUPPORTED);
        assert_null(project);
    }
    for (int odd = 0; odd < 2; odd++) {
        EngCudaStream *stream = fresh_stream(odd);
        EngProjectProblem problem = d.problem;
        problem.w = upload_off(d.w, odd ? 8 : 0), problem.w_scales = upload(d.w_scales);
        EngProjectArgs args = {upload_off(d.x, odd ? 0 : 8), upload(d.x_scales), allocate(512)};
        ok(eng_cuda_project_create(&problem, 0, &project, &g_err));
        assert_int_equal(eng_cuda_project(project, &args, stream, &g_err), ENG_UNSUPPORTED);
        ok(eng_cuda_wait(stream, &g_err));
        no_faults("odd places");
        eng_cuda_project_destroy(project);
        eng_cuda_stream_destroy(stream);
    }
    check(by_mma, ENG_FP8, ENG_F32, 0, 32, 32, 0, 1);
    no_faults("refusals");
}

/* ---- cuBLASLt ---- */

void test_blas_shapes(void **)
{
    int number = 0;
    for (int tokens : {0, 1, 2, 16, 17, 33, 100})
        for (EngDtype x : {ENG_FP8, ENG_BF16})
            for (EngDtype w : {ENG_FP8, ENG_BF16})
                for (EngDtype out : {ENG_F32, ENG_BF16}) {
                    Data d = random_data(x, w, out, tokens, 64, number % 2 ? 6144 : 96,
                                         (uint64_t)number);
                    compare(d, project(d, by_blas, 0, number++), 1, "cuBLASLt");
                }
    Data odd = random_data(ENG_BF16, ENG_BF16, ENG_BF16, 3, 24, 40, 5);
    compare(odd, project(odd, by_blas, 0, 1), 1, "cuBLASLt, no whole groups");
}

void test_blas_nonfinite(void **)
{
    Data d = random_data(ENG_FP8, ENG_FP8, ENG_F32, 5, 96, 160, 9);
    d.w[5 * 160 + 77] = 0x7f, d.w[40 * 160 + 159] = 0xff;
    d.w_scales[2 * 5 + 1] = 255, d.w_scales[3] = 0;
    d.x[3 * 160 + 32] = 0xff, d.x_scales[4 * 5 + 4] = 255;
    compare(d, project(d, by_blas, 0, 3), 1, "cuBLASLt, not a number");
}

void test_blas_refuses(void **)
{
    Data d = random_data(ENG_BF16, ENG_BF16, ENG_F32, 2, 64, 64, 1);
    EngCudaBlas *blas = nullptr;
    EngCudaStream *stream = fresh_stream(1);
    for (int which = 0; which < 4; which++) {
        EngProjectProblem problem = d.problem;
        if (which == 0) problem.tokens = INT64_C(1) << 40;
        if (which == 1) problem.n = 60;
        if (which == 2) problem.k = 60;
        if (which == 3) problem.k = 40, problem.x = ENG_FP8;
        assert_int_equal(eng_cuda_blas_create(&problem, stream, &blas, &g_err), ENG_UNSUPPORTED);
        assert_null(blas);
    }
    EngProjectProblem there = d.problem;
    there.w = upload(d.w);
    ok(eng_cuda_blas_create(&there, stream, &blas, &g_err));
    for (size_t odd : {2, 8}) {
        EngProjectArgs args = {upload_off(d.x, odd == 2 ? 2 : 0), nullptr,
                               static_cast<uint8_t *>(allocate(1024)) + (odd == 8 ? 8 : 0)};
        assert_int_equal(eng_cuda_blas_project(blas, &args, stream, &g_err), ENG_UNSUPPORTED);
    }
    eng_cuda_blas_destroy(blas);
    no_faults("refusals");
    eng_cuda_stream_destroy(stream);
}

/* Weights are expanded when create returns: any stream may use them. */
void test_blas_in_another_stream(void **)
{
    for (int number = 0; number < 8; number++) {
        Data d = random_data(ENG_BF16, ENG_FP8, ENG_F32, 3, 64, 64, 1);
        EngCudaBlas *blas;
        EngCudaStream *one = fresh_stream(number), *other;
        ok(eng_cuda_stream_create(&other, &g_err));
        EngProjectProblem problem = d.problem;
        problem.w = upload(d.w), problem.w_scales = upload(d.w_scales);
        ok(eng_cuda_blas_create(&problem, one, &blas, &g_err));
        assert_true(eng_cuda_blas_expansion(blas).ns > 0);
        EngProjectArgs args = {upload(d.x), nullptr, allocate(3 * 64 * 4)};
        ok(eng_cuda_blas_project(blas, &args, other, &g_err));
        ok(eng_cuda_wait(other, &g_err));
        compare(d, download(static_cast<uint8_t *>(args.out), 3 * 64 * 4), 1, "another stream");
        no_faults("another stream");
        eng_cuda_blas_destroy(blas);
        eng_cuda_stream_destroy(one), eng_cuda_stream_destroy(other);
    }
}

/* One set of buffers in two streams that nothing orders. */
void test_blas_in_two_streams(void **)
{
    for (bool broken : {false, true}) {
        Data d = random_data(ENG_BF16, ENG_FP8, ENG_F32, 3, 64, 64, 1);
        EngCudaBlas *blas;
        EngCudaStream *one = fresh_stream(1), *other = one;
        if (broken) ok(eng_cuda_stream_create(&other, &g_err));
        EngProjectProblem problem = d.problem;
        problem.w = upload(d.w), problem.w_scales = upload(d.w_scales);
        ok(eng_cuda_blas_create(&problem, one, &blas, &g_err));
        const uint8_t *x = upload(d.x);
        for (EngCudaStream *stream : {one, other}) {
            EngProjectArgs args = {x, nullptr, allocate(3 * 64 * 4)};
            ok(eng_cuda_blas_project(blas, &args, stream, &g_err));
        }
        cudaDeviceSynchronize();
        assert_int_equal(simt::fault(0),
                         broken ? simt::Fault::race_between_streams : simt::Fault::none);
        eng_cuda_blas_destroy(blas);
        eng_cuda_stream_destroy(one);
        if (broken) eng_cuda_stream_destroy(other);
    }
}

/* What the stand-in looks for, from 1 on: a leading dimension, an algorithm of another product,
 * alignment that was promised, a small workspace, no handle, a workspace at an odd place, a sum;
 * and operands that nobody wrote, an output and a workspace beyond their memory. */
void test_blas_faults(void **)
{
    for (int broken = 0; broken <= 10; broken++) {
        EngCudaStream *stream = fresh_stream(broken);
        cublasLtHandle_t handle;
        cublasLtMatmulDesc_t product;
        cublasLtMatrixLayout_t a, b, d, other;
        cublasLtMatmulPreference_t preference;
        cublasLtMatmulHeuristicResult_t result;
        cublasOperation_t transposed = CUBLAS_OP_T;
        size_t space = 4096;
        int n = 0;
        const float one = 1, zero = 0;
        std::vector<uint16_t> ones(64 * 8, 0x3f80);
        uint16_t *left = upload(ones), *right = upload(ones);
        if (broken == 8) left = static_cast<uint16_t *>(allocate(2 * ones.size()));
        float *out = static_cast<float *>(allocate(broken == 9 ? 64 : 4 * 64));
        char *workspace = static_cast<char *>(allocate(broken == 10 ? space - 256 : space + 256));
        cublasLtCreate(&handle);
        cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                       sizeof transposed);
        cublasLtMatrixLayoutCreate(&a, CUDA_R_16BF, 64, 8, 64);
        cublasLtMatrixLayoutCreate(&b, CUDA_R_16BF, 64, 4, 64);
        cublasLtMatrixLayoutCreate(&d, CUDA_R_32F, 8, 4, 8);
        cublasLtMatrixLayoutCreate(&other, CUDA_R_16BF, 64, 4, broken == 1 ? 60 : 64);
        cublasLtMatmulPreferenceCreate(&preference);
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &space, sizeof space);
        assert_int_equal(
            cublasLtMatmulAlgoGetHeuristic(handle, product, a, b, d, d, preference, 1, &result, &n),
            CUBLAS_STATUS_SUCCESS);
        if (broken == 2) result.algo.data[0]++;
        cublasLtMatmul(broken == 5 ? nullptr : handle, product, &one, left, a,
                       right + (broken == 3 ? 8 : 0), other, broken == 7 ? &one : &zero, out, d,
                       out, d, &result.algo, workspace + (broken == 6 ? 16 : 0),
                       broken == 4 ? 512 : space, stream);
        ok(eng_cuda_wait(stream, &g_err));
        assert_int_equal(simt::fault(0), broken == 0   ? simt::Fault::none
                                         : broken == 8 ? simt::Fault::uninitialised
                                         : broken > 8  ? simt::Fault::bounds
                                                       : simt::Fault::library_call);
        if (!broken)
            for (float value : download(out, 32)) assert_true(value == 64);
        for (cublasLtMatrixLayout_t layout : {a, b, d, other}) cublasLtMatrixLayoutDestroy(layout);
        cublasLtMatmulPreferenceDestroy(preference), cublasLtMatmulDescDestroy(product);
        cublasLtDestroy(handle);
        eng_cuda_stream_destroy(stream);
    }
}

/* ---- the variants of the registry ---- */

void test_variants(void **)
{
    for (const char *name : {"cuda_mma", "cuda_cublaslt"}) {
        Data d = random_data(ENG_FP8, ENG_FP8, ENG_BF16, 3, 64, 128, 4);
        EngProblem problem = {};
        EngArgs args = {};
        fresh_device(1);
        problem.op = ENG_OP_PROJECT, problem.threads = 1, problem.tuned[0] = 2;
        problem.u.project = d.problem;
        problem.u.project.w = upload(d.w), problem.u.project.w_scales = upload(d.w_scales);
        void *out = allocate(2 * 3 * 64);
        args.u.project = {upload(d.x), upload(d.x_scales), out};
        run_variant(ENG_OP_PROJECT, name, problem, args);
        compare(d, download(static_cast<uint8_t *>(out), 2 * 3 * 64), 1, name);
        problem.u.project.tokens = -1;
        assert_int_equal(eng_kernel_find(ENG_OP_PROJECT, name)->supports(&problem, &g_err),
                         ENG_UNSUPPORTED);
    }
}

/* ---- the whole matrix ---- */

const int whole_n = 25600, whole_k = 6144;

void whole(Projector projector, EngDtype x, int64_t tokens, const char *what)
{
    Data d = random_data(x, ENG_FP8, ENG_BF16, tokens, whole_n, whole_k, 77);
    compare(d, project(d, projector, 0, 2), 97, what); /* a prime: every token, every place */
}

void test_mma_whole(void **)
{
    whole(by_mma, ENG_FP8, 1, "whole matrix, 1 token");
    whole(by_mma, ENG_FP8, 16, "whole matrix, 16 tokens");
}

void test_blas_whole(void **)
{
    whole(by_blas, ENG_FP8, 1, "cuBLASLt, whole matrix, 1 token");
    whole(by_blas, ENG_BF16, 16, "cuBLASLt, whole matrix, 16 tokens");
}
} // namespace

int main(void)
{
    const CMUnitTest tests[] = {
        CASES(test_mma_shapes),
        CASES(test_mma_tile_of_a_scale),
        CASES(test_mma_range_of_scales),
        CASES(test_mma_nonfinite),
        CASES(test_mma_bits),
        CASES(test_mma_refuses),
        CASES(test_blas_shapes),
        CASES(test_blas_nonfinite),
        CASES(test_blas_refuses),
        CASES(test_blas_in_another_stream),
        CASES(test_blas_in_two_streams),
        CASES(test_blas_faults),
        CASES(test_variants),
        CASES(test_mma_whole),
        CASES(test_blas_whole),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
