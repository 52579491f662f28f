/* The registry: every variant complete and findable, names unique, names and parsers inverse. */
#include "kernels_test.h"

static void test_variants(void **state)
{
    int total = 0;
    (void)state;
    for (int op = 0; op < ENG_OP_COUNT; op++) {
        int n, checked = 0;
        const EngKernel *const *kernels = eng_kernels((EngOp)op, &n);
        assert_true(n >= 1);
        for (int i = 0; i < n; i++) {
            const EngKernel *k = kernels[i];
            assert_int_equal(k->op, op);
            assert_non_null(k->supports);
            assert_non_null(k->cost);
            assert_non_null(k->run);
            assert_true(k->summary && strlen(k->summary) > 10 && !strchr(k->summary, '\n'));
            assert_true(k->roof || k->checked);
            assert_ptr_equal(eng_kernel_find((EngOp)op, k->name), k); /* unique: found first */
            checked += k->checked;
        }
        assert_true(checked >= 1);
        total += n;
    }
    assert_true(total >= 15);
    int n = 7;
    assert_null(eng_kernels(ENG_OP_COUNT, &n));
    assert_int_equal(n, 0);
    assert_null(eng_kernel_find(ENG_OP_GATE, "no such variant"));
}

static void test_roofs(void **state)
{
    (void)state;
    assert_true(eng_kernel_find(ENG_OP_GATHER, "roof_copy_d16")->roof);
    assert_false(eng_kernel_find(ENG_OP_GATHER, "roof_copy_d16")->checked);
    assert_true(eng_kernel_find(ENG_OP_PROJECT, "onednn_bf16")->roof);
    assert_true(eng_kernel_find(ENG_OP_PROJECT, "onednn_bf16")->checked);
    assert_true(eng_kernel_find(ENG_OP_GATE, "roof_inplace")->roof);
    assert_true(eng_kernel_find(ENG_OP_HASH, "roof_store")->roof);
    assert_false(eng_kernel_find(ENG_OP_HASH, "naive")->roof);
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < ENG_OP_COUNT; i++) assert_int_equal(eng_op_parse(eng_op_name((EngOp)i)), i);
    for (int i = 0; i < ENG_GATE_FORMULA_COUNT; i++)
        assert_int_equal(eng_gate_formula_parse(eng_gate_formula_name((EngGateFormula)i)), i);
    assert_int_equal(eng_op_parse("gathr"), -1);
    assert_int_equal(eng_gate_formula_parse(""), -1);
    assert_null(eng_op_name(ENG_OP_COUNT));
    assert_null(eng_gate_formula_name((EngGateFormula)-1));
    assert_string_equal(eng_backend_name(ENG_CPU), "cpu");
    assert_string_equal(eng_backend_name(ENG_CUDA), "cuda");
    assert_null(eng_backend_name(ENG_BACKEND_COUNT));
}

/* An array that does not fit whole adds nothing; one that is there already neither. */
static void test_add(void **state)
{
    enum { MANY = 200 };
    static char names[MANY][16];
    static EngKernel kernels[MANY];
    const EngKernel *array[MANY + 1] = {NULL};
    int before, after;
    EngErr err = {0};
    (void)state;
    eng_kernels(ENG_OP_SGD, &before);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "mine_%d", i);
        kernels[i] = (EngKernel){.op = ENG_OP_SGD, .name = names[i]};
        array[i] = &kernels[i];
    }
    assert_int_equal(eng_kernels_add(array, false, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "sgd has no room for kernel mine_"));
    eng_kernels(ENG_OP_SGD, &after);
    assert_int_equal(after, before);
    array[1] = NULL;
    assert_int_equal(eng_kernels_add(array, false, &err), ENG_OK);
    assert_ptr_equal(eng_kernel_find(ENG_OP_SGD, "mine_0"), &kernels[0]);
    assert_int_equal(eng_kernels_add(array, false, &err), ENG_USAGE);
    kernels[1].name = names[0];
    array[0] = &kernels[1];
    assert_int_equal(eng_kernels_add(array, true, &err), ENG_OK);
    assert_ptr_equal(eng_kernel_find(ENG_OP_SGD, "mine_0"), array[0]);
    eng_kernels(ENG_OP_SGD, &after);
    assert_int_equal(after, before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants), cmocka_unit_test(test_roofs), cmocka_unit_test(test_names),
        cmocka_unit_test(test_add), /* the last: it changes the registry */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
