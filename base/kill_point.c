/* See kill_point.h. */
#include "base/kill_point.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *g_at;
static long g_left;
static int g_read;

static void read_environment(void)
{
    g_read = 1;
    const char *text = getenv("ENG_KILL_AT"), *colon = text ? strrchr(text, ':') : NULL;
    if (!colon) return;
    g_at = text;
    g_left = strtol(colon + 1, NULL, 10);
}

void eng_kill_point(const char *place)
{
    if (!g_read) read_environment();
    if (!g_at) return;
    size_t n = strlen(place);
    if (strncmp(g_at, place, n) || g_at[n] != ':' || --g_left) return;
    kill(getpid(), SIGKILL);
}
