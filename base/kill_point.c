/* See kill_point.h. */
#include "base/kill_point.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *g_at;
static atomic_long g_left;
static pthread_once_t g_read = PTHREAD_ONCE_INIT;

static void read_environment(void)
{
    const char *text = getenv("ENG_KILL_AT"), *colon = text ? strrchr(text, ':') : NULL;
    if (!colon) return;
    g_at = text;
    atomic_store(&g_left, strtol(colon + 1, NULL, 10));
}

void eng_kill_point(const char *place)
{
    pthread_once(&g_read, read_environment);
    if (!g_at) return;
    size_t n = strlen(place);
    if (strncmp(g_at, place, n) || g_at[n] != ':' || atomic_fetch_sub(&g_left, 1) != 1) return;
    kill(getpid(), SIGKILL);
}
