/* The short convolution on the host executor against the oracle: shapes that take four channels at
 * a time and one, sequences shorter and longer than the decode state, and decode one token after
 * the other.
 */
#include "helpers.hpp"

extern "C" {
#include "kernels/ref/conv.h"
}

namespace
{
std::vector<float> random_floats(EngRng *rng, size_t n, double deviation)
{
    std::vector<float> values(n);
    for (float &value : values) value = (float)(deviation * eng_rng_normal(rng));
    return values;
}

struct Shape {
    int64_t tokens;
    int streams, hidden, kernel, dilation;
};

struct Data {
    EngConvProblem problem;
    std::vector<float> norm, taps, value, state;
};

Data random_data(const Shape &s, int number)
{
    EngRng rng;
    eng_rng_seed(&rng, (uint64_t)number);
    size_t width = (size_t)(s.streams * s.hidden);
    size_t history = (size_t)((s.kernel - 1) * s.dilation);
    Data d;
    d.norm = random_floats(&rng, width, 1);
    d.taps = random_floats(&rng, width * (size_t)s.kernel, 0.5);
    d.value = random_floats(&rng, (size_t)s.tokens * width, 2);
    d.state = random_floats(&rng, history * width, 1);
    d.problem = {s.tokens,   s.streams, s.hidden,      s.kernel,
                 s.dilation, 1e-5f,     d.norm.data(), d.taps.data()};
    return d;
}

void check(const Shape &s, int number, size_t off = 0)
{
    Data d = random_data(s, number);
    size_t n = d.value.size();
    std::vector<double> want(n), want_state(d.state.size()), sums(n);
    eng_ref_conv(&d.problem, d.value.data(), d.state.data(), want.data(), want_state.data(),
                 sums.data());

    EngCudaStream *stream = fresh_stream(number);
    EngCudaConv *conv;
    EngConvProblem problem = d.problem;
    problem.norm_weight = upload(d.norm), problem.conv_weight = upload(d.taps);
    EngConvArgs args = {upload_off(d.value, off), upload(d.state),
                        static_cast<float *>(allocate(n * sizeof(float)))};
    ok(eng_cuda_conv_create(&problem, &conv, &g_err));
    ok(eng_cuda_conv(conv, &args, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    std::vector<float> out = download(args.out, n), state = download(args.state, d.state.size());
    no_faults("convolution");
    eng_cuda_conv_destroy(conv);
    eng_cuda_stream_destroy(stream);

    EngComparison outs, states;
    eng_residual_start(&outs), eng_residual_start(&states);
    for (size_t i = 0; i < n; i++)
        eng_residual_add(&outs, ENG_F32, out[i], want[i],
                         eng_ref_conv_limit(&problem, want[i], d.value[i], sums[i]));
    for (size_t i = 0; i < state.size(); i++) /* a tap of weight 1 */
        eng_residual_add(&states, ENG_F32, state[i], want_state[i],
                         eng_ref_conv_limit(&problem, want_state[i], 0, std::abs(want_state[i])));
    assert_residual(outs, "convolution");
    assert_residual(states, "decode state");
}

void test_shapes(void **)
{
    int number = 0;
    check({17, 4, 1024, 4, 3}, number++); /* the demo's */
    check({5, 2, 64, 4, 3}, number++, 4); /* too odd for four channels at a time */
    for (int64_t tokens : {1, 2, 3, 8, 9, 10, 33})
        for (const Shape &s : {Shape{0, 4, 64, 4, 3}, Shape{0, 1, 5, 2, 1}, Shape{0, 3, 130, 3, 2},
                               Shape{0, 2, 516, 1, 1}}) {
            Shape own = s;
            own.tokens = tokens;
            check(own, number++);
        }
}

/* One token a step gives the bits of all at once. */
void test_decode(void **)
{
    Data d = random_data({14, 4, 64, 4, 3}, 5);
    size_t width = 4 * 64;
    std::vector<float> all, steps;
    for (bool decode : {false, true}) {
        EngCudaStream *stream = fresh_stream(3);
        EngCudaConv *conv;
        EngConvProblem problem = d.problem;
        problem.norm_weight = upload(d.norm), problem.conv_weight = upload(d.taps);
        if (decode) problem.tokens = 1;
        ok(eng_cuda_conv_create(&problem, &conv, &g_err));
        float *value = upload(d.value), *state = upload(d.state);
        float *out = static_cast<float *>(allocate(d.value.size() * sizeof(float)));
        for (size_t t = 0; t < (decode ? 14u : 1u); t++) {
            EngConvArgs args = {value + t * width, state, out + t * width};
            ok(eng_cuda_conv(conv, &args, stream, &g_err));
        }
        ok(eng_cuda_wait(stream, &g_err));
        std::vector<float> &to = decode ? steps : all;
        to = download(out, d.value.size());
        for (float last : download(state, d.state.size())) to.push_back(last);
        no_faults("decode");
        eng_cuda_conv_destroy(conv);
        eng_cuda_stream_destroy(stream);
    }
    assert_memory_equal(steps.data(), all.data(), all.size() * sizeof(float));
}

void test_variant(void **)
{
    Data d = random_data({5, 2, 32, 4, 3}, 1);
    fresh_device(1);
    EngProblem problem = {};
    EngArgs args = {};
    problem.op = ENG_OP_CONV, problem.u.conv = d.problem;
    problem.u.conv.norm_weight = upload(d.norm), problem.u.conv.conv_weight = upload(d.taps);
    float *out = static_cast<float *>(allocate(d.value.size() * sizeof(float)));
    args.u.conv = {upload(d.value), upload(d.state), out};
    run_variant(ENG_OP_CONV, "cuda_taps", problem, args);
    std::vector<double> want(d.value.size());
    eng_ref_conv(&d.problem, d.value.data(), d.state.data(), want.data(), nullptr, nullptr);
    std::vector<float> got = download(out, d.value.size());
    for (size_t i = 0; i < got.size(); i++) assert_true(std::abs(got[i] - want[i]) < 1e-4);
    problem.u.conv.kernel = 0;
    void *state;
    assert_int_equal(eng_kernel_find(ENG_OP_CONV, "cuda_taps")->create(&problem, &state, &g_err),
                     ENG_UNSUPPORTED);
}
} // namespace

int main(void)
{
    const CMUnitTest tests[] = {
        CASES(test_shapes),
        CASES(test_decode),
        CASES(test_variant),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
