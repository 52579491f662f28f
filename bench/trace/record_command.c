/* See record_command.h. */
#include "bench/trace/record_command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/nvtx.h"

#define LIBRARY "libengram_nvtx.so"

static volatile sig_atomic_t g_child;

static void pass_on(int signal_number)
{
    if (g_child > 0) kill((pid_t)g_child, signal_number);
}

/* ---- the command -------------------------------------------------------------------------------
 */

static EngStatus find_hook(const EngRecordOptions *options, char *path, size_t size, EngErr *err)
{
    const char *given = options->hook ? options->hook : getenv("ENG_NVTX_HOOK");
    if (given) {
        snprintf(path, size, "%s", given);
    } else {
        ssize_t n = readlink("/proc/self/exe", path, size - sizeof LIBRARY - 1);
        path[n > 0 ? n : 0] = 0;
        char *slash = strrchr(path, '/');
        strcpy(slash ? slash + 1 : path, LIBRARY);
    }
    if (access(path, R_OK) == 0) return ENG_OK;
    return ENG_FAIL(err, ENG_NOT_FOUND, "%s: the hook library is not there (ENG_NVTX_HOOK)", path);
}

/* In the child; does not return. The pipe tells the parent why exec failed, or closes with it. */
static void become(const EngRecordOptions *options, const char *hook, const char *folder, int fd)
{
    char chunks[32];
    int64_t n = options->process_bytes / ENG_RECORD_CHUNK_BYTES;
    snprintf(chunks, sizeof chunks, "%lld", (long long)(n > 0 ? n : 1024));
    setenv("NVTX_INJECTION64_PATH", hook, 1);
    setenv("ENG_TRACE_DIR", folder, 1);
    setenv("ENG_TRACE_CHUNKS", chunks, 1);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    execvp(options->argv[0], (char *const *)(uintptr_t)options->argv);
    int why = errno;
    if (write(fd, &why, sizeof why) < 0) _exit(126);
    _exit(127);
}

/* A terminal's interrupt reaches the command itself: we stay to write what it recorded. */
static EngStatus run_command(const EngRecordOptions *options, const char *hook, const char *folder,
                             int *exit_code, EngErr *err)
{
    int pipe_fds[2], why = 0, wait_status = 0;
    if (pipe2(pipe_fds, O_CLOEXEC))
        return ENG_FAIL(err, ENG_IO, "cannot make a pipe: %s", strerror(errno));
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) become(options, hook, folder, pipe_fds[1]);
    close(pipe_fds[1]);
    g_child = pid;
    signal(SIGTERM, pass_on);
    signal(SIGHUP, pass_on);
    ssize_t got = pid < 0 ? 0 : read(pipe_fds[0], &why, sizeof why);
    close(pipe_fds[0]);
    while (pid > 0 && waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
    }
    g_child = 0;
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    if (pid < 0) return ENG_FAIL(err, ENG_NO_MEMORY, "cannot fork: %s", strerror(errno));
    if (got == (ssize_t)sizeof why)
        return ENG_FAIL(err, ENG_USAGE, "%s: cannot be started: %s", options->argv[0],
                        strerror(why));
    *exit_code = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    return ENG_OK;
}

/* ---- its recordings ----------------------------------------------------------------------------
 */

typedef struct Recordings {
    EngMapping *maps;
    EngRecordHead **heads;
    int n, room;
} Recordings;

static int by_start(const void *a, const void *b)
{
    int64_t x = (*(EngRecordHead *const *)a)->start_ns, y = (*(EngRecordHead *const *)b)->start_ns;
    return x < y ? -1 : x > y;
}

static EngStatus open_recordings(const char *folder, Recordings *r, EngErr *err)
{
    EngStatus status = ENG_OK;
    DIR *dir = opendir(folder);
    if (!dir) return ENG_FAIL(err, ENG_IO, "%s: cannot read: %s", folder, strerror(errno));
    while (readdir(dir)) r->room++;
    rewinddir(dir);
    status = eng_alloc_or((void **)&r->maps, (size_t)r->room, sizeof *r->maps, "recordings", err);
    if (!status)
        status =
            eng_alloc_or((void **)&r->heads, (size_t)r->room, sizeof *r->heads, "recordings", err);
    for (struct dirent *entry; !status && r->n < r->room && (entry = readdir(dir));) {
        char path[8192];
        if (!strstr(entry->d_name, ".rec")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        status = eng_file_map(path, &r->maps[r->n], err);
        if (status) break;
        if (!eng_recording_valid(r->maps[r->n].data, r->maps[r->n].bytes)) {
            eng_warn("trace", "%s: not a whole recording, left out", entry->d_name);
            eng_file_unmap(&r->maps[r->n]);
            continue;
        }
        r->heads[r->n] = (EngRecordHead *)(uintptr_t)r->maps[r->n].data;
        r->n++;
    }
    closedir(dir);
    if (!status) qsort(r->heads, (size_t)r->n, sizeof *r->heads, by_start);
    return status;
}

static void close_recordings(Recordings *r)
{
    for (int i = 0; i < r->n; i++) eng_file_unmap(&r->maps[i]);
    eng_free(r->maps);
    eng_free(r->heads);
}

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    char path[8192];
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strstr(entry->d_name, ".rec")) unlink(path);
    }
    if (dir) closedir(dir);
    rmdir(folder);
}

static EngStatus write_file(const EngRecordOptions *options, const EngNsysSession *session,
                            const Recordings *r, EngRecordResult *result, EngErr *err)
{
    EngNsys *nsys = NULL;
    EngStatus status = eng_nsys_create(options->out, session, &nsys, err);
    if (!status)
        status = eng_recording_put(nsys, r->heads, r->n, session->start_ns, &result->counts, err);
    if (!status) return eng_nsys_commit(nsys, err);
    eng_nsys_abort(nsys);
    return status;
}

static int64_t utc_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

EngStatus eng_record_command(const EngRecordOptions *options, EngRecordResult *result, EngErr *err)
{
    char hook[4096], folder[4096];
    Recordings recordings = {0};
    *result = (EngRecordResult){0};
    if (!eng_nvtx_built())
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "built without the NVTX headers (scripts/setup fetches them)");
    if (eng_nvtx_outside_tool())
        return ENG_FAIL(err, ENG_USAGE, "NVTX_INJECTION64_PATH is set: another tool records");
    EngStatus status = find_hook(options, hook, sizeof hook, err);
    if (status) return status;
    struct stat st; /* a place that cannot take the file is told before the command runs */
    if (!lstat(options->out, &st) && !S_ISREG(st.st_mode))
        return ENG_FAIL(err, ENG_IO, "%s: not a regular file, left alone", options->out);
    if (snprintf(folder, sizeof folder, "%s.XXXXXX", options->out) >= (int)sizeof folder - 64 ||
        !mkdtemp(folder))
        return ENG_FAIL(err, ENG_IO, "%s: cannot write beside it: %s", options->out,
                        strerror(errno));
    char *absolute = realpath(folder, NULL), *hook_path = realpath(hook, NULL);
    EngNsysSession session = {.start_ns = eng_now_ns(),
                              .utc_ns = utc_ns(),
                              .version = options->version,
                              .argv = options->argv};
    if (!absolute || !hook_path) status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for paths");
    if (!status) status = run_command(options, hook_path, absolute, &result->exit_code, err);
    session.duration_ns = eng_now_ns() - session.start_ns;
    if (!status) status = open_recordings(folder, &recordings, err);
    result->processes = recordings.n;
    for (int i = 0; i < recordings.n; i++) result->killed += !recordings.heads[i]->stop_ns;
    if (!status && !recordings.n)
        status = ENG_FAIL(err, ENG_NOT_FOUND,
                          "%s: made no NVTX call (or closed its environment): nothing to write",
                          options->argv[0]);
    if (!status) {
        session.pid = recordings.heads[0]->pid;
        status = write_file(options, &session, &recordings, result, err);
    }
    close_recordings(&recordings);
    remove_folder(folder);
    free(absolute);
    free(hook_path);
    return status;
}
