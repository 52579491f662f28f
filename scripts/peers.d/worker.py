"""One side of a comparison in a process of its own: reads commands as JSON lines, answers each.

Processes are apart because two OpenMP runtimes and two oneDNN versions do not share one well. A side
is a module with a class Side(inputs, threads) that has
  version()                      what is measured, with its version
  variants(op, tokens)           names to choose from
  make(op, tokens, variant)      (call, result): call(i) runs window i to its end, result() is the last
                                 output as a numpy array, bf16 as uint16; raises Unsupported or RuntimeError
"""
import gc
import importlib
import json
import os
import sys
import time
import traceback


class Unsupported(RuntimeError):
    """This side does not have the operation."""


def clock_calls(call, first, n):
    """(wall ns, CPU ns of the process) per call, over n calls on successive windows."""
    cpu, wall = time.process_time_ns(), time.perf_counter_ns()
    for i in range(first, first + n):
        call(i)
    wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
    return wall / n, cpu / n


class Worker:
    def __init__(self, module, kind, folder, threads):
        import inputs
        data = inputs.Inputs(folder)
        side = importlib.import_module(module).Side
        self.side = side(data, threads, kind) if kind else side(data, threads)

    def hello(self):
        return {"version": self.side.version()}

    def variants(self, op, tokens):
        return {"variants": self.side.variants(op, tokens)}

    def make(self, op, tokens, variant):
        self.call = self.result = None
        gc.collect()  # the last one's buffers go before the next one's come
        self.call, self.result = self.side.make(op, tokens, variant)
        self.call(0)  # compiles, allocates
        return {"name": getattr(self.call, "name", variant)}

    def output(self, window, file):
        import numpy as np
        self.call(window)
        np.save(file, self.result())
        return {}

    def time(self, first, n):
        self.call(first - 1)  # wakes threads and code, with a window this side has just used
        wall, cpu = clock_calls(self.call, first, n)
        return {"wall_ns": wall, "cpu_ns": cpu}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not enter the answers
    module, kind, folder, threads = sys.argv[1:5]
    if int(threads) == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    def answer(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()
    try:
        worker = Worker(module, kind, folder, int(threads))
        answer(worker.hello())
    except Exception as problem:  # a peer that is not there is one skipped line, not a crash
        answer({"error": f"{type(problem).__name__}: {problem}"[:300]})
        return
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer(getattr(worker, command.pop("do"))(**command))
        except Exception as problem:
            if os.environ.get("ENG_PEERS_TRACE"):
                traceback.print_exc()
            answer({"error": f"{type(problem).__name__}: {problem}"[:300]})


if __name__ == "__main__":
    main()
