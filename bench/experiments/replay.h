/* A device's runs as graphs: the axis `graph`.
 *
 * What one run launches for a window of inputs is captured and replayed, so that the host launches
 * once, however many kernels a run has. Each window has a graph of its own: inputs rotate as they
 * do without graphs. All are captured at the first run, which is verified or warms up: a capture
 * costs many times a replay, and samples rotate through fewer windows than there are.
 */
#ifndef ENG_EXPERIMENTS_REPLAY_H
#define ENG_EXPERIMENTS_REPLAY_H

#include "bench/core/experiment.h"
#include "bench/experiments/support.h"
#include "kernels/cuda/queue.h"

#define ENG_MAX_GRAPHS 4096

typedef struct EngReplay {
    EngCudaGraph **graphs; /* [n], NULL: runs are launched */
    int64_t n;
    bool captured;
} EngReplay;

/* n or, where the point replays graphs, at most ENG_MAX_GRAPHS windows. */
int64_t eng_replay_windows(const EngPoint *point, int64_t n);
/* Without the axis, or at off, later calls only pass the body on. */
EngStatus eng_replay_open(EngReplay *replay, const EngPoint *point, int64_t windows, EngErr *err);
void eng_replay_close(EngReplay *replay); /* accepts zeros */
/* body(state, window): one run. */
typedef EngStatus (*EngReplayBody)(void *state, int64_t window, EngErr *err);
EngStatus eng_replay_run(EngReplay *replay, EngReplayBody body, void *state, int64_t window,
                         EngErr *err);
/* What the first run does before it is one, where graphs are wanted: the body is launched once, and
 * captured for each window. */
EngStatus eng_replay_capture(EngReplay *replay, EngReplayBody body, void *state, int64_t window,
                             EngErr *err);
/* A run that is looked at, of n runners with the arguments that the body gives them: these buffers'
 * content on the host is what it reads and, where it writes nothing, what it leaves. What launched
 * work left behind never passes for a graph's. */
EngStatus eng_replay_run_whole(EngReplay *replay, EngReplayBody body, void *state, int64_t window,
                               EngRunner *runners, const EngArgs *args, int n, EngErr *err);

#endif
