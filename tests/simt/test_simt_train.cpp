/* The training path on the host executor against the oracles in double precision: gate backward
 * with masked tokens and in place, scatter-add with many and few duplicates (and the bits of the
 * host's sort), the Sinkhorn-balanced update over steps with rows that come and go and groups.
 */
#include "helpers.hpp"

#include <cmath>

extern "C" {
#include "kernels/ref/back_gather.h"
#include "kernels/ref/sinkhorn.h"
#include "kernels/ref/train_gate.h"
}

namespace
{
typedef std::vector<float> Floats;
typedef std::vector<double> Doubles;

Doubles normals(EngRng *rng, size_t n, double mean, double deviation)
{
    Doubles values(n); /* that f32 holds exactly */
    for (double &value : values) value = (float)(mean + deviation * eng_rng_normal(rng));
    return values;
}

Floats narrowed(const Doubles &from)
{
    return Floats(from.begin(), from.end());
}

void assert_within(const float *got, const Doubles &want, const Doubles &errors, const char *what)
{
    EngComparison residual;
    eng_residual_start(&residual);
    for (size_t i = 0; i < want.size(); i++)
        eng_residual_add(&residual, ENG_F32, got[i], want[i], {errors[i], errors[i]});
    assert_residual(residual, what);
}

/* ---- gate backward ---- */

struct Gradients {
    Doubles streams, kv, q, k;
    EngRefGateGradients pointers(void)
    {
        return {streams.data(), kv.data(), q.data(), k.data()};
    }
};

void check_gate(int64_t tokens, int streams, int hidden, EngGateFormula formula, int number)
{
    EngRng rng;
    eng_rng_seed(&rng, (uint64_t)number);
    EngTrainGateProblem problem = {tokens, streams, hidden, formula, 1e-20f};
    size_t width = (size_t)(streams * hidden), n = (size_t)tokens * width;
    size_t n_kv = n + (size_t)(tokens * hidden);
    size_t n_kept = (size_t)(tokens * streams) * ENG_GATE_KEPT;
    Doubles x = normals(&rng, n, 0, 2), kv = normals(&rng, n_kv, 0, 1);
    Doubles q = normals(&rng, width, 1, 0.5), k = normals(&rng, width, 1, 0.5);
    Doubles d_out = normals(&rng, n, 0, 1), kept(n_kept);
    std::vector<uint8_t> dead((size_t)tokens);
    for (size_t t = 0; t < dead.size(); t++) dead[t] = t % 5 == 3;
    EngRefGateInputs inputs = {x.data(), kv.data(), q.data(), k.data(), dead.data()};
    eng_ref_train_gate(&problem, &inputs, nullptr, kept.data(), nullptr, nullptr);
    Gradients want = {Doubles(n), Doubles(n_kv), Doubles(width), Doubles(width)}, errors = want;
    EngRefGateGradients to = want.pointers(), limits = errors.pointers();
    eng_ref_back_gate(&problem, &inputs, d_out.data(), &to, &limits);

    Floats x_there = narrowed(x), kv_there = narrowed(kv), before(width, 0.25f);
    for (size_t t = 0; t < dead.size(); t++) /* what a masked token holds does not count */
        if (dead[t]) x_there[t * width] = NAN, kv_there[t * (width + (size_t)hidden)] = INFINITY;
    EngCudaStream *stream = fresh_stream(number);
    EngCudaBackGate *back;
    bool in_place = number % 2;
    EngBackGateArgs args = {};
    args.streams_in = upload(x_there), args.kv = upload(kv_there);
    args.q_weight = upload(narrowed(q)), args.k_weight = upload(narrowed(k));
    args.dead = upload(dead), args.kept = upload(narrowed(kept));
    float *gradient = upload(narrowed(d_out));
    args.d_out = gradient;
    args.d_streams = in_place ? gradient : static_cast<float *>(allocate(n * sizeof(float)));
    args.d_kv = static_cast<float *>(allocate(n_kv * sizeof(float)));
    args.d_q_weight = upload(before), args.d_k_weight = upload(before);
    ok(eng_cuda_back_gate_create(&problem, &back, &g_err));
    ok(eng_cuda_back_gate(back, &args, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    no_faults("gate backward");
    for (size_t i = 0; i < width; i++) { /* added to what was there */
        want.q[i] += before[i], want.k[i] += before[i];
        errors.q[i] += 0x1p-24 * std::abs(want.q[i]), errors.k[i] += 0x1p-24 * std::abs(want.k[i]);
    }
    assert_within(download(args.d_streams, n).data(), want.streams, errors.streams, "d_streams");
    assert_within(download(args.d_kv, n_kv).data(), want.kv, errors.kv, "d_kv");
    assert_within(download(args.d_q_weight, width).data(), want.q, errors.q, "d_q_weight");
    assert_within(download(args.d_k_weight, width).data(), want.k, errors.k, "d_k_weight");
    no_faults("gate backward: results");
    eng_cuda_back_gate_destroy(back);
    eng_cuda_stream_destroy(stream);
}

void test_back_gate(void **)
{
    int number = 0;
    for (int formula = 0; formula < ENG_GATE_FORMULA_COUNT; formula++) {
        check_gate(0, 4, 64, (EngGateFormula)formula, number++);
        check_gate(1, 4, 64, (EngGateFormula)formula, number++);
        check_gate(7, 1, 17, (EngGateFormula)formula, number++);
        check_gate(67, 3, 33, (EngGateFormula)formula, number++);
        check_gate(140, 8, 1, (EngGateFormula)formula, number++);
    }
    check_gate(5, 4, 5120, ENG_GATE_COPYSIGN, number++);
    check_gate(6, 4, 5120, ENG_GATE_SIGN, number++);
}

/* ---- scatter-add ---- */

struct Scatter {
    EngBackGatherProblem problem;
    std::vector<int64_t> rows;
    Floats d_out;
    int64_t stride;
};

Scatter random_scatter(int64_t table_rows, int64_t spread, int64_t tokens, int columns, int dims)
{
    EngRng rng;
    eng_rng_seed(&rng, 17);
    Scatter s = {{table_rows, dims, columns, tokens}, {}, {}, columns + 3};
    for (int64_t i = 0; i < tokens * s.stride; i++)
        s.rows.push_back(i % s.stride < columns
                             ? table_rows - 1 - (int64_t)eng_rng_below(&rng, (uint64_t)spread)
                             : INT64_MAX); /* never read */
    for (int64_t i = 0; i < tokens * columns * dims; i++)
        s.d_out.push_back((float)eng_rng_normal(&rng));
    return s;
}

void compare(const Scatter &s, const std::vector<int64_t> &touched, int64_t n, const Floats &d_rows)
{
    size_t all = (size_t)(s.problem.tokens * s.problem.columns), dims = (size_t)s.problem.row_dims;
    EngBackGatherArgs args = {s.rows.data(), s.stride, s.d_out.data(), nullptr, nullptr, nullptr};
    std::vector<int64_t> want(all + 1);
    int64_t n_want = -1, times;
    Doubles sum(dims), abs_sum(dims);
    EngComparison residual;
    eng_residual_start(&residual);
    assert_true(eng_ref_touched(&s.problem, &args, want.data(), &n_want));
    assert_int_equal(n, n_want);
    assert_memory_equal(touched.data(), want.data(), (size_t)n * sizeof(int64_t));
    for (size_t i = 0; i < (size_t)n; i++) {
        eng_ref_back_gather_row(&s.problem, &args, want[i], sum.data(), abs_sum.data(), &times);
        for (size_t j = 0; j < dims; j++)
            eng_residual_add(&residual, ENG_F32, d_rows[i * dims + j], sum[j],
                             eng_limit_sum(ENG_F32, sum[j], (double)times, abs_sum[j]));
    }
    assert_residual(residual, "scatter-add");
}

void check_scatter(int64_t table_rows, int64_t spread, int64_t tokens, int columns, int dims,
                   int number)
{
    Scatter s = random_scatter(table_rows, spread, tokens, columns, dims);
    if (table_rows > (int64_t)1 << 32) /* neighbours whose ids differ beyond 32 bits alone */
        s.rows[0] = 5, s.rows[1] = ((int64_t)1 << 32) + 5, s.rows[2] = ((int64_t)1 << 32) + 6;
    size_t all = (size_t)(tokens * columns);
    EngCudaStream *stream = fresh_stream(number);
    EngCudaBackGather *back;
    EngBackGatherArgs args = {};
    args.rows = upload(s.rows), args.row_stride = s.stride;
    args.d_out =
        upload_off(s.d_out, number % 2 ? 4 : 0); /* in loads of 16 bytes only where it may */
    args.touched = static_cast<int64_t *>(allocate(all * sizeof(int64_t)));
    args.n_touched = static_cast<int64_t *>(allocate(sizeof(int64_t)));
    args.d_rows = static_cast<float *>(allocate(all * (size_t)dims * sizeof(float)));
    ok(eng_cuda_back_gather_create(&s.problem, &back, &g_err));
    for (int time = 0; time < 2; time++) ok(eng_cuda_back_gather(back, &args, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    no_faults("scatter-add");
    int64_t n = download(args.n_touched, 1)[0];
    assert_true(n >= 0 && n <= (int64_t)all);
    std::vector<int64_t> touched = download(args.touched, (size_t)n);
    Floats d_rows = download(args.d_rows, (size_t)n * (size_t)dims);
    no_faults("scatter-add: results");
    eng_cuda_back_gather_destroy(back);
    eng_cuda_stream_destroy(stream);
    compare(s, touched, n, d_rows);

    const EngKernel *host = eng_kernel_find(ENG_OP_BACK_GATHER, "sort");
    EngProblem problem = {};
    EngArgs host_args = {};
    void *state = nullptr;
    std::vector<int64_t> host_touched(all + 1);
    Floats host_rows(all * (size_t)dims + 1);
    problem.op = ENG_OP_BACK_GATHER, problem.threads = 1, problem.u.back_gather = s.problem;
    host_args.u.back_gather = {s.rows.data(),       s.stride, s.d_out.data(),
                               host_touched.data(), &n,       host_rows.data()};
    ok(host->create(&problem, &state, &g_err));
    ok(host->run(state, &problem, &host_args, &g_err));
    host->destroy(state);
    for (size_t i = 0; i < d_rows.size(); i++) assert_true(d_rows[i] == host_rows[i]);
}

void test_back_gather(void **)
{
    int number = 0;
    check_scatter(100, 100, 0, 4, 8, number++);
    check_scatter(1, 1, 33, 2, 5, number++); /* one row: no digit to sort by */
    check_scatter(1000, 10, 50, 6, 17, number++);
    check_scatter(1000, 1000, 50, 6, 16, number++);
    check_scatter(70000, 70000, 129, 24, 32, number++); /* four tiles */
    check_scatter(384006168, 384006168, 64, 24, 256, number++);
    check_scatter((int64_t)5 << 30, (int64_t)5 << 30, 64, 4, 8, number++); /* beyond 32 bits */
    check_scatter((int64_t)5 << 30, 1, 1, 4, 8, number++);
    check_scatter(64, 64, 2, 3, 1, number++);
    check_scatter(1 << 20, 1 << 20, 750, 24, 4, number++); /* more rows than the grid has warps */
}

/* ---- Sinkhorn ---- */

EngSinkhornProblem problem_of(int64_t rows, int dims)
{
    return {rows, dims, rows, 0.95f, 0.18f, 1e-3f, 1e-20f, 11, 1, nullptr};
}

/* Both sides from the same weights at every step, whose gradients touch every 7th row or so, some
 * rows only in the beginning; each row has a size of its own. */
void check_sinkhorn(const EngSinkhornProblem &problem, bool all_rows, int steps, int number,
                    int first = 1)
{
    EngRng rng;
    eng_rng_seed(&rng, 41);
    size_t rows = (size_t)problem.rows, dims = (size_t)problem.row_dims, n = rows * dims;
    Doubles w = normals(&rng, n, 0, 1), momentum(n), ratios(rows), errors(n);
    EngCudaStream *stream = fresh_stream(number);
    EngCudaSinkhorn *state;
    ok(eng_cuda_sinkhorn_create(&problem, &state, &g_err));
    EngSinkhornArgs args = {};
    float *grad_there = static_cast<float *>(allocate(n * sizeof(float)));
    int64_t *touched_there = static_cast<int64_t *>(allocate(rows * sizeof(int64_t)));
    /* Momentum of step 0: of nothing in the beginning, and forgotten long after it. */
    float before = first > 4096 ? 1 : 0;
    args.w = upload(narrowed(w)), args.momentum = upload(Floats(n, before));
    args.row_norms = upload(Floats(rows, before)),
    args.row_steps = upload(std::vector<int32_t>(rows));
    args.grad = grad_there, args.rate = 0.05f;
    for (int step = first; step < first + steps; step++) {
        std::vector<int64_t> touched;
        for (int64_t row = 0; row < problem.rows; row++)
            if (all_rows || (eng_rng_below(&rng, 7) == 0 && (step < 20 || row % 3)))
                touched.push_back(row);
        Doubles grad(n);
        Floats packed;
        for (int64_t row : touched)
            for (size_t j = 0; j < dims; j++) {
                packed.push_back((float)(pow(4, (double)(row % 5)) * eng_rng_normal(&rng)));
                grad[(size_t)row * dims + j] = packed.back();
            }
        copy_in(grad_there, packed.data(), packed.size() * sizeof(float));
        copy_in(touched_there, touched.data(), touched.size() * sizeof(int64_t));
        args.touched = all_rows ? nullptr : touched_there;
        args.n_touched = (int64_t)touched.size(), args.step = step;
        ok(eng_cuda_sinkhorn(state, &args, stream, &g_err));
        ok(eng_cuda_wait(stream, &g_err));
        no_faults("Sinkhorn");
        assert_true(eng_ref_sinkhorn(&problem, w.data(), grad.data(), momentum.data(), 0.05f,
                                     ratios.data(), errors.data()));
        for (double ratio : ratios) /* a decision in the balance: not ours */
            assert_true(std::abs(ratio / problem.tau - 1) > 1e-4);
        Floats got = download(args.w, n);
        assert_within(got.data(), w, errors, "w");
        w.assign(got.begin(), got.end());
    }
    eng_cuda_sinkhorn_destroy(state);
    eng_cuda_stream_destroy(stream);
}

void test_sinkhorn(void **)
{
    static const int64_t bounds[] = {0, 11, 11, 12, 40};
    int number = 0;
    EngSinkhornProblem problem = problem_of(40, 8);
    check_sinkhorn(problem, false, 200, number++); /* rows fall below the threshold, come back */
    problem.bounds = bounds, problem.n_groups = 4;
    check_sinkhorn(problem, false, 40, number++);
    problem = problem_of(37, 19);
    problem.balance = 1;
    check_sinkhorn(problem, false, 10, number++);
    check_sinkhorn(problem_of(1, 1), false, 10, number++);
    check_sinkhorn(problem_of(600, 24), true, 3, number++);
    check_sinkhorn(problem_of(100, 256), true, 2, number++);
    check_sinkhorn(problem_of(9000, 4), true, 1, number++);      /* as many parts as there may be */
    check_sinkhorn(problem_of(40, 8), false, 3, number++, 5000); /* decays that count as none */
}

/* A column without any gradient must not turn into NaN through its scale. */
void test_sinkhorn_column_of_zeros(void **)
{
    EngSinkhornProblem problem = problem_of(5, 4);
    Floats w(20, 1.0f), grad(20, 0.5f);
    for (size_t i = 2; i < 20; i += 4) grad[i] = 0;
    EngCudaStream *stream = fresh_stream(2);
    EngCudaSinkhorn *state;
    ok(eng_cuda_sinkhorn_create(&problem, &state, &g_err));
    EngSinkhornArgs args = {};
    args.w = upload(w), args.momentum = upload(Floats(20)), args.row_norms = upload(Floats(5));
    args.row_steps = upload(std::vector<int32_t>(5)), args.grad = upload(grad);
    args.n_touched = 5, args.rate = 0.05f, args.step = 1;
    ok(eng_cuda_sinkhorn(state, &args, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    Floats got = download(args.w, 20);
    for (size_t i = 0; i < 20; i++) assert_true(i % 4 == 2 ? got[i] == 1 : got[i] < 1);
    args.n_touched = 6;
    assert_int_equal(eng_cuda_sinkhorn(state, &args, stream, &g_err), ENG_USAGE);
    no_faults("column of zeros");
    eng_cuda_sinkhorn_destroy(state);
    eng_cuda_stream_destroy(stream);
}

/* ---- refusals and the registry ---- */

void test_refuses(void **)
{
    static const int64_t falling[] = {0, 5, 3, 9};
    EngCudaBackGate *gate = nullptr;
    EngCudaBackGather *gather = nullptr;
    EngCudaSinkhorn *sinkhorn = nullptr;
    fresh_device(1);
    EngTrainGateProblem many = {2, 9, 8, ENG_GATE_PLAIN, 0};
    assert_int_equal(eng_cuda_back_gate_create(&many, &gate, &g_err), ENG_UNSUPPORTED);
    EngBackGatherProblem large = {9, 8, 24, (int64_t)1 << 40};
    assert_int_equal(eng_cuda_back_gather_create(&large, &gather, &g_err), ENG_UNSUPPORTED);
    for (int which = 0; which < 4; which++) {
        EngSinkhornProblem problem = problem_of(9, 8);
        if (which == 0) problem.balance = 10;
        if (which == 1) problem.row_dims = 1025;
        if (which == 2) problem.max_touched = 10;
        if (which == 3) problem.bounds = falling, problem.n_groups = 3;
        assert_int_equal(eng_cuda_sinkhorn_create(&problem, &sinkhorn, &g_err), ENG_UNSUPPORTED);
    }
    assert_true(!gate && !gather && !sinkhorn);
    no_faults("refusals");
}

void test_variants(void **)
{
    EngProblem problem = {};
    EngArgs args = {};
    fresh_device(1);
    problem.op = ENG_OP_BACK_GATE, problem.u.train_gate = {2, 2, 4, ENG_GATE_PLAIN, 1e-20f};
    EngBackGateArgs &gate = args.u.back_gate;
    gate.streams_in = upload(Floats(16, 1)), gate.kv = upload(Floats(24, 1));
    gate.q_weight = upload(Floats(8, 1)), gate.k_weight = upload(Floats(8, 1));
    gate.kept = upload(Floats(16)), gate.d_out = upload(Floats(16, 1));
    gate.d_streams = static_cast<float *>(allocate(64));
    gate.d_kv = static_cast<float *>(allocate(96));
    gate.d_q_weight = upload(Floats(8)), gate.d_k_weight = upload(Floats(8));
    run_variant(ENG_OP_BACK_GATE, "cuda_parts", problem, args);
    for (float value : download(gate.d_streams, 16)) assert_true(value == 1); /* gates are 0 */

    problem = {}, args = {};
    problem.op = ENG_OP_BACK_GATHER, problem.u.back_gather = {9, 4, 2, 2};
    EngBackGatherArgs &gather = args.u.back_gather;
    gather.rows = upload(std::vector<int64_t>{7, 3, 3, 8}), gather.row_stride = 2;
    gather.d_out = upload(Floats(16, 1)), gather.d_rows = static_cast<float *>(allocate(64));
    gather.touched = static_cast<int64_t *>(allocate(32));
    gather.n_touched = static_cast<int64_t *>(allocate(8));
    run_variant(ENG_OP_BACK_GATHER, "cuda_sort", problem, args);
    assert_int_equal(download(gather.n_touched, 1)[0], 3);
    assert_true(download(gather.d_rows, 1)[0] == 2);

    problem = {}, args = {};
    problem.op = ENG_OP_SINKHORN, problem.u.sinkhorn = problem_of(3, 4);
    EngSinkhornArgs &sinkhorn = args.u.sinkhorn;
    sinkhorn.w = upload(Floats(12)), sinkhorn.momentum = upload(Floats(12));
    sinkhorn.row_norms = upload(Floats(3)), sinkhorn.row_steps = upload(std::vector<int32_t>(3));
    sinkhorn.grad = upload(Floats(12, 1)), sinkhorn.n_touched = 3, sinkhorn.step = 1;
    sinkhorn.rate = 1;
    run_variant(ENG_OP_SINKHORN, "cuda_scales", problem, args);
    for (float value : download(sinkhorn.w, 12)) assert_true(std::abs(value + 0.18f) < 1e-5);
}
} // namespace

int main(void)
{
    const CMUnitTest tests[] = {
        CASES(test_back_gate), CASES(test_back_gather),
        CASES(test_sinkhorn),  CASES(test_sinkhorn_column_of_zeros),
        CASES(test_refuses),   CASES(test_variants),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
