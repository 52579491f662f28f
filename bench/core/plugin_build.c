/* Making the kernels' shared object in a build folder of this project; see plugin.h. */
#include "bench/core/plugin.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

extern char **environ;

bool eng_plugin_can_build(const char *folder)
{
    char path[PATH_MAX];
    struct stat info;
    int n = snprintf(path, sizeof path, "%s/CMakeCache.txt", folder);
    return n < (int)sizeof path && !stat(path, &info) && S_ISREG(info.st_mode);
}

/* Its output goes to our standard error: standard output is for data. */
static EngStatus run_cmake(const char *folder, int *how, EngErr *err)
{
    char cores[16];
    const char *const argv[] = {"cmake",          "--build",    folder, "--target",
                                "engram_kernels", "--parallel", cores,  NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    snprintf(cores, sizeof cores, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    if (posix_spawn_file_actions_init(&actions))
        return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for a build", folder);
    int failed = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (!failed) failed = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) return ENG_FAIL(err, ENG_IO, "%s: cannot run cmake: %s", folder, strerror(failed));
    while (waitpid(pid, how, 0) < 0)
        if (errno != EINTR) return ENG_FAIL(err, ENG_IO, "%s: lost its cmake", folder);
    return ENG_OK;
}

EngStatus eng_plugin_build(const char *folder, EngErr *err)
{
    int how = 0;
    if (!eng_plugin_can_build(folder))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: no build folder, it has no CMakeCache.txt", folder);
    eng_info("build", "cmake --build %s --target engram_kernels", folder);
    EngStatus status = run_cmake(folder, &how, err);
    if (status || !how) return status;
    if (WIFSIGNALED(how) && (WTERMSIG(how) == SIGINT || WTERMSIG(how) == SIGTERM))
        return ENG_FAIL(err, ENG_INTERRUPTED, "%s: building was interrupted", folder);
    return ENG_FAIL(err, ENG_BAD_DATA, "%s: building engram_kernels failed, see above", folder);
}
