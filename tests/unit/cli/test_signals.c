/* An interrupt that comes in the middle of a product must leave memory as it was. oneDNN's f32
 * products keep a buffer on the heap in the stack pointer for some shapes. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "bench/cli/cli.h"

enum { M = 256, N = 64, K = 192, TRIES = 100 };

static float g_a[M * K], g_b[K * N], g_c[M * N];

/* Products until the interrupt; the last one is over before this ends. A damaged heap ends it in
 * free(). */
static void multiply_until(const volatile sig_atomic_t *interrupted)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!*interrupted)
        if (dnnl_sgemm('N', 'N', M, N, K, 1, g_a, K, g_b, N, 0, g_c, N)) _exit(1);
    _exit(0);
}

static void test_interrupt_in_a_product(void **state)
{
    (void)state;
    for (int i = 0; i < M * K; i++) g_a[i] = (float)(i % 7);
    for (int i = 0; i < K * N; i++) g_b[i] = (float)(i % 5);
    /* Kernels are made in the first call: children have them, and the handler. */
    const volatile sig_atomic_t *interrupted = eng_cli_watch_signals();
    omp_set_num_threads(1);
    assert_int_equal(dnnl_sgemm('N', 'N', M, N, K, 1, g_a, K, g_b, N, 0, g_c, N), 0);
    for (int i = 0; i < TRIES; i++) {
        struct timespec pause = {.tv_nsec = 2000000 + 7919 * i};
        int how = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) multiply_until(interrupted);
        nanosleep(&pause, NULL);
        assert_int_equal(kill(child, SIGTERM), 0);
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_int_equal(how, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interrupt_in_a_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
