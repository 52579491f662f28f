/* See replay.h. */
#include "bench/experiments/replay.h"

#include "base/mem.h"
#include "bench/experiments/device_axes.h"

int64_t eng_replay_windows(const EngPoint *point, int64_t n)
{
    return eng_point_has_graph(point) && n > ENG_MAX_GRAPHS ? ENG_MAX_GRAPHS : n;
}

EngStatus eng_replay_open(EngReplay *replay, const EngPoint *point, int64_t windows, EngErr *err)
{
    *replay = (EngReplay){.n = windows};
    if (!eng_point_has_graph(point)) return ENG_OK;
    return eng_alloc_or((void **)&replay->graphs, (size_t)windows, sizeof(EngCudaGraph *), "graphs",
                        err);
}

void eng_replay_close(EngReplay *replay)
{
    for (int64_t i = 0; replay->graphs && i < replay->n; i++)
        eng_cuda_graph_destroy(replay->graphs[i]);
    eng_free(replay->graphs);
    *replay = (EngReplay){0};
}

static EngStatus capture(EngReplay *replay, EngReplayBody body, void *state, int64_t window,
                         EngCudaStream *stream, EngErr *err)
{
    EngErr later;
    EngStatus status = eng_cuda_capture_begin(stream, err);
    if (status) return status;
    status = body(state, window, err);
    EngStatus ended = eng_cuda_capture_end(stream, &replay->graphs[window], &later);
    if (status || !ended) return status;
    if (err) *err = later;
    return ended;
}

/* A run that is launched sees all buffers first, which may not happen in a capture. */
static EngStatus capture_all(EngReplay *replay, EngReplayBody body, void *state, int64_t window,
                             EngCudaStream *stream, EngErr *err)
{
    EngStatus status = body(state, window, err);
    for (int64_t i = 0; i < replay->n && !status; i++)
        if (!replay->graphs[i]) status = capture(replay, body, state, i, stream, err);
    replay->captured = !status;
    return status;
}

EngStatus eng_replay_capture(EngReplay *replay, EngReplayBody body, void *state, int64_t window,
                             EngErr *err)
{
    EngCudaStream *stream;
    if (!replay->graphs || replay->captured) return ENG_OK;
    EngStatus status = eng_cuda_main(&stream, err);
    return status ? status : capture_all(replay, body, state, window, stream, err);
}

EngStatus eng_replay_run(EngReplay *replay, EngReplayBody body, void *state, int64_t window,
                         EngErr *err)
{
    EngCudaStream *stream;
    if (!replay->graphs) return body(state, window, err);
    EngStatus status = eng_cuda_main(&stream, err);
    if (!status) status = eng_replay_capture(replay, body, state, window, err);
    if (!status) status = eng_cuda_graph_launch(replay->graphs[window], stream, err);
    return status ? status : eng_cuda_settle(stream, err);
}

EngStatus eng_replay_run_whole(EngReplay *replay, EngReplayBody body, void *state, int64_t window,
                               EngRunner *runners, const EngArgs *args, int n, EngErr *err)
{
    /* What a kernel keeps between its launches is then another window's, where there is one. */
    int64_t other = window ? window - 1 : replay->n - 1;
    EngStatus status = eng_replay_capture(replay, body, state, other, err);
    for (int i = 0; i < n && !status; i++) status = eng_runner_push(&runners[i], &args[i], err);
    if (!status) status = eng_replay_run(replay, body, state, window, err);
    for (int i = 0; i < n && !status; i++) status = eng_runner_pull(&runners[i], &args[i], err);
    return status;
}
