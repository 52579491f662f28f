/* The golden vectors through the CUDA kernels: rows of the hash with their digests, also of one
 * layer and of a small made-up address, and the gate's answers to single scores.
 */
#include "helpers.hpp"

#include <cmath>
#include <string>

extern "C" {
#include <jansson.h>

#include "base/digest.h"
#include "kernels/address/preset.h"
}

namespace
{
EngAddress address_of(const char *preset_name)
{
    EngPreset preset;
    EngAddress address;
    ok(eng_preset_find(preset_name, &preset, &g_err));
    ok(eng_address_build(&preset.address, &address, &g_err));
    return address;
}

std::vector<int32_t> ids_of(const json_t *list)
{
    std::vector<int32_t> ids;
    size_t i;
    json_t *id;
    assert_true(json_array_size(list) > 0);
    json_array_foreach(list, i, id) ids.push_back((int32_t)json_integer_value(id));
    return ids;
}

/* [position][layer][column] of one fresh sequence. */
std::vector<int64_t> device_hash(const EngAddress &address, const std::vector<int32_t> &ids,
                                 int number)
{
    EngCudaStream *stream = fresh_stream(number);
    EngCudaHash *hash;
    size_t n = ids.size() * (size_t)(address.n_layers * address.n_columns);
    int64_t tokens = (int64_t)ids.size();
    int64_t *rows = static_cast<int64_t *>(allocate(n * sizeof(int64_t)));
    EngHashArgs args = {upload(ids), tokens, tokens, nullptr, 0, nullptr, rows};
    ok(eng_cuda_hash_create(&address, &hash, &g_err));
    ok(eng_cuda_hash(hash, &args, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    std::vector<int64_t> got = download(rows, n);
    eng_cuda_hash_destroy(hash);
    eng_cuda_stream_destroy(stream);
    no_faults("hash");
    return got;
}

void check_digest(const std::vector<int64_t> &rows, const json_t *golden)
{
    char hex[ENG_DIGEST_HEX];
    const char *want = json_string_value(json_object_get(golden, "sha256_i64le"));
    assert_non_null(want);
    ok(eng_digest(rows.data(), rows.size() * sizeof(int64_t), hex, &g_err));
    assert_string_equal(hex, want);
}

/* How many rows are listed, all of which have to be the same. */
size_t check_rows(const std::vector<int64_t> &rows, const json_t *positions)
{
    size_t n = 0, t, l, c;
    json_t *layers, *columns, *row;
    json_array_foreach(positions, t, layers) json_array_foreach(layers, l, columns)
        json_array_foreach(columns, c, row)
    {
        assert_true(n < rows.size());
        assert_int_equal(rows[n++], json_integer_value(row));
    }
    return n;
}

/* One layer by a kernel that has no other: its seed depends on its id, its primes on the layers
 * before it, which are in the address. */
EngAddress only_layer(const EngAddress &all, int layer)
{
    EngAddress one = all;
    one.n_layers = 1;
    memcpy(one.multipliers[0], all.multipliers[layer], sizeof one.multipliers[0]);
    memcpy(one.primes[0], all.primes[layer], sizeof one.primes[0]);
    memcpy(one.offsets[0], all.offsets[layer], sizeof one.offsets[0]);
    one.rows[0] = all.rows[layer];
    return one;
}

void test_hash(void **)
{
    const char *moved = getenv("ENG_SOURCE_DIR"); /* a packed program runs elsewhere */
    std::string path = std::string(moved ? moved : ENG_SOURCE_DIR) + "/tests/data/golden_hash.json";
    json_t *file = json_load_file(path.c_str(), 0, nullptr), *golden;
    json_t *cases = json_object_get(file, "cases"), *tiny = json_object_get(file, "tiny");
    json_t *layers = json_object_get(file, "layer_digests");
    EngAddress a = address_of("engram-demo"), b = address_of("v41-flash");
    size_t i, listed = 0;
    assert_true(json_array_size(cases) >= 10);
    json_array_foreach(cases, i, golden)
    {
        bool is_a = *json_string_value(json_object_get(golden, "variant")) == 'A';
        std::vector<int64_t> rows =
            device_hash(is_a ? a : b, ids_of(json_object_get(golden, "compressed")), (int)i);
        check_digest(rows, golden);
        listed += check_rows(rows, json_object_get(golden, "rows"));
    }
    assert_true(listed > 0);
    std::vector<int64_t> rows =
        device_hash(address_of("tiny"), ids_of(json_object_get(tiny, "compressed")), 2);
    assert_int_equal(check_rows(rows, json_object_get(tiny, "rows")), rows.size());
    assert_true(json_array_size(layers) >= 2);
    json_array_foreach(layers, i, golden)
    {
        int layer = json_integer_value(json_object_get(golden, "layer")) == 14;
        check_digest(
            device_hash(only_layer(b, layer), ids_of(json_object_get(golden, "tokens")), (int)i),
            golden);
    }
    json_decref(file);
}

/* ---- gate ---- */

/* One token whose stream, key and k are ones: the score is the sum of q by sqrt(hidden), and three
 * elements hold all bits of it. */
float gate_of_score(double score, int hidden, EngGateFormula formula, float *got_score, int number)
{
    size_t n = (size_t)hidden;
    std::vector<uint16_t> ones(n, 0x3f80), q(n, 0), k(n, 0x3f80), kv(2 * n, 0x3f80);
    EngCudaStream *stream = fresh_stream(number);
    if (score == 0 && std::signbit(score)) /* -2^-149 / sqrt(hidden) is none */
        q[0] = eng_ref_bf16_round(0x1p-100), k[0] = eng_ref_bf16_round(-0x1p-49);
    double rest = score * sqrt((double)hidden);
    for (size_t i = 0; i < 3 && rest != 0; i++) {
        q[i] = eng_ref_bf16_round(rest);
        rest -= eng_ref_bf16(q[i]);
    }
    uint16_t *x = upload(ones);
    float *gate = static_cast<float *>(allocate(sizeof(float)));
    float *kept = static_cast<float *>(allocate(sizeof(float)));
    EngGateProblem problem = {1, 1, hidden, formula, 1e-20f, upload(q), upload(k)};
    EngGateArgs args = {x, x, upload(kv), nullptr, gate, kept};
    ok(eng_cuda_gate(&problem, &args, stream, &g_err));
    ok(eng_cuda_wait(stream, &g_err));
    float got = download(gate, 1)[0];
    *got_score = download(kept, 1)[0];
    no_faults("gate");
    eng_cuda_stream_destroy(stream);
    return got;
}

/* Both kernels: 4 elements are read one by one, 64 in wide loads. */
void test_gate(void **)
{
    static const double answers[][2] = {{0.0, 0.5002499999791666},
                                        {-0.0, 0.4997500000208333},
                                        {1e-12, 0.5002499999791666},
                                        {-1e-12, 0.4997500000208333},
                                        {1e-6, 0.5002499999791666},
                                        {-1e-6, 0.4997500000208333},
                                        {1e-3, 0.5079050354084492},
                                        {-1e-3, 0.49209496459155083},
                                        {0.25, 0.6224593312018546},
                                        {-0.25, 0.3775406687981454},
                                        {1, 0.7310585786300049},
                                        {-1, 0.2689414213699951},
                                        {4, 0.8807970779778823},
                                        {-4, 0.11920292202211755},
                                        {100, 0.9999546021312976},
                                        {-100, 4.5397868702434395e-05},
                                        {10000, 1},
                                        {-10000, 3.7200759760208356e-44}};
    for (int hidden : {4, 64}) {
        int number = 0;
        for (const auto &answer : answers) {
            float score;
            float got = gate_of_score(answer[0], hidden, ENG_GATE_COPYSIGN, &score, number++);
            assert_true(fabs(score - answer[0]) <= 0x1p-21 * fabs(answer[0]));
            assert_int_equal(std::signbit(score), std::signbit(answer[0]));
            assert_true(fabs(got - answer[1]) <= 1e-5 * answer[1] + 1e-43);
            if (score == 0) {
                assert_true(gate_of_score(answer[0], hidden, ENG_GATE_SIGN, &score, 1) == 0.5f);
                assert_true(gate_of_score(answer[0], hidden, ENG_GATE_PLAIN, &score, 1) == 0.5f);
            } else if (fabs(score) > 2e-6) {
                float sign = gate_of_score(answer[0], hidden, ENG_GATE_SIGN, &score, number);
                assert_memory_equal(&sign, &got, sizeof got);
            }
        }
        float score, plain = gate_of_score(4, hidden, ENG_GATE_PLAIN, &score, 1);
        assert_true(fabs(plain - 0.9820137900379085) <= 1e-6);
    }
}
} // namespace

int main(void)
{
    const CMUnitTest tests[] = {CASES(test_hash), CASES(test_gate)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
