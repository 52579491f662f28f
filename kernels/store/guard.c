/* SIGBUS guard; see guard.h. */
#include "kernels/store/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

static struct sigaction g_before;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static __thread sigjmp_buf *volatile t_back; /* of the guarded region this thread is in */
static __thread volatile uintptr_t t_at;
static __thread sigset_t t_mask; /* of the thread at the access: jumping out of the handler keeps
                                    what the handler blocks */

static void on_sigbus(int signal, siginfo_t *info, void *context)
{
    if (t_back) {
        t_at = (uintptr_t)info->si_addr;
        t_mask = ((ucontext_t *)context)->uc_sigmask;
        siglongjmp(*t_back, 1);
    }
    if (g_before.sa_flags & SA_SIGINFO)
        g_before.sa_sigaction(signal, info, context);
    else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN)
        g_before.sa_handler(signal);
    else
        sigaction(SIGBUS, &g_before, NULL); /* the access is repeated and ends the process */
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &g_before);
}

void eng_guard_install(void)
{
    pthread_once(&g_once, install);
}

bool eng_guarded(void (*body)(void *context), void *context, uintptr_t *at)
{
    sigjmp_buf back;
    if (sigsetjmp(back, 0)) { /* saving the mask here would cost every batch a system call */
        t_back = NULL;
        pthread_sigmask(SIG_SETMASK, &t_mask, NULL);
        *at = t_at;
        return false;
    }
    t_back = &back;
    body(context);
    t_back = NULL;
    return true;
}
