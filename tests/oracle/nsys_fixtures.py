#!/usr/bin/env python3
"""Trace files with known answers, made from the documented schemas of Nsight Systems exports alone
(NVIDIA's SQLite schema reference and its changes from 3.16 to 3.28), independently of the reader
that the tests check with them. Only the standard library is used.

  nsys_fixtures.py DIR    writes the files below into DIR

engine_3.16, engine_3.22, engine_3.28 (.sqlite): two decode steps of a serving engine on one GPU, one
launch order, three schema versions and three sets of kernel names. Per step, in microseconds from
its start (stream 7 computes, stream 13 reads rows):

    attention   7    5 ..  45        hash      13   10 ..  15
    all-gather  7   65 ..  75        lookup 1  13   15 ..  65
    projection  7   80 .. 100        lookup 14 13   65 .. 125
    gate        7  100 .. 110
    experts     7  110 .. 200
    projection  7  200 .. 220
    gate        7  220 .. 230

Layer 1: fetch 50; needed at 45, ready at 75: stall 30, of which 20 read and 10 collective; hidden
0.4. Layer 14: fetch 60, ready before it is needed: stall 0, hidden 1. engine_3.22 has three records
more that must be refused: one there twice, one backwards, one without times. In engine_3.28 all
kernels of a step come from one graph launch, with node ids.

one_stream: the same on one stream in that order, nothing hidden. graphs, lost, old_major,
empty_export, not_an_export: files that must be refused. steps: a traced point of this workbench,
domain "engram", two threads, 8 steps of 2 layers (see STEPS).
"""
import json
import os
import sqlite3
import sys

PID, VM = 4242, 1
GLOBAL_PID = VM << 48 | PID << 24
KERNEL = {
    "3.16": "start end deviceId contextId greenContextId streamId correlationId globalPid demangledName shortName "
            "mangledName launchType cacheConfig registersPerThread gridX gridY gridZ blockX blockY blockZ "
            "staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId "
            "sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig",
}
KERNEL["3.22"] = KERNEL["3.16"] + " qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX clusterY clusterZ"
KERNEL["3.28"] = KERNEL["3.22"] + (" clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters "
                                   "sharedMemoryRequestedPercentage tensorSizeMinusOneElements")
NVTX = ("start end eventType rangeId category color text globalTid endGlobalTid textId domainId uint64Value "
        "int64Value doubleValue uint32Value int32Value floatValue jsonTextId jsonText binaryData")
RUNTIME = "start end eventClass globalTid correlationId nameId returnValue callchainId"
NAMES = {
    "3.16": dict(hash="_hash_ids_kernel", lookup="_engram_lookup_kernel", projection="nvjet_tst_64x8_64x16_2x4_h_bz_TNT",
                 gate="_engram_gate_kernel", collective="ncclDevKernel_AllGather_RING_LL"),
    "3.22": dict(hash="_engram_hash_kernel", lookup="_engram_gather_kernel", projection="cutlass_80_tensorop_bf16",
                 gate="_engram_gate_kernel_0d1d", collective="void vllm::cross_device_reduce_1stage"),
    "3.28": dict(hash="fused_ngram_kernel", lookup="engram_gather_kernel", projection="sm90_fp8_gemm_1d2d_impl",
                 gate="engram_fused_gate", collective="ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
}
#        class         stream  from  to   microseconds
STEP = [("attention",      7,   5,  45), ("hash",       13,  10,  15), ("lookup",    13,  15,  65),
        ("lookup",        13,  65, 125), ("collective",  7,  65,  75), ("projection", 7,  80, 100),
        ("gate",           7, 100, 110), ("experts",     7, 110, 200), ("projection", 7, 200, 220),
        ("gate",           7, 220, 230)]
ONE_STREAM = [("hash", 7, 10, 15), ("lookup", 7, 15, 65), ("collective", 7, 65, 75), ("projection", 7, 75, 95),
              ("gate", 7, 95, 105), ("hash", 7, 105, 108), ("lookup", 7, 110, 170), ("projection", 7, 172, 190),
              ("gate", 7, 190, 200)]
T0, PERIOD = 1_000_000, 1_000_000  # ns


class Export:
    def __init__(self, path, version, kernels=True):
        if os.path.exists(path):
            os.remove(path)
        self.db = sqlite3.connect(path)
        self.version, self.strings, self.correlation = version, {}, 0
        self.table("StringIds", "id value")
        self.table("META_DATA_EXPORT", "name value")
        self.table("TARGET_INFO_SESSION_START_TIME", "utcEpochNs utcTime localTime")
        for key, value in [("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"), ("EXPORT_PRODUCT_VERSION", "invented"),
                           ("EXPORT_SCHEMA_VERSION", version + ".1")]:
            self.row("META_DATA_EXPORT", name=key, value=value)
        if kernels:
            self.kernel_columns = KERNEL[version]
            self.table("CUPTI_ACTIVITY_KIND_KERNEL", self.kernel_columns)
            self.table("CUPTI_ACTIVITY_KIND_RUNTIME", RUNTIME)
        self.table("NVTX_EVENTS", NVTX + (" eventId" if version == "3.28" else ""))

    def table(self, name, columns):
        text = ("value", "name", "text", "jsonText", "binaryData", "utcTime", "localTime", "tensorSizeMinusOneElements")
        real = ("doubleValue", "floatValue")
        self.db.execute("CREATE TABLE %s (%s)" % (name, ", ".join(
            "%s %s" % (c, "TEXT" if c in text else "REAL" if c in real else "INTEGER")
            for c in columns.split())))

    def row(self, table, **values):
        self.db.execute("INSERT INTO %s (%s) VALUES (%s)" % (table, ", ".join(values), ", ".join("?" * len(values))),
                        list(values.values()))

    def string(self, text):
        if text not in self.strings:
            self.strings[text] = len(self.strings) + 1
            self.row("StringIds", id=self.strings[text], value=text)
        return self.strings[text]

    def kernel(self, name, stream, start, end, correlation, node=None, device=0):
        columns = dict.fromkeys(self.kernel_columns.split(), 1)
        columns.update(start=start, end=end, deviceId=device, contextId=1, greenContextId=None, streamId=stream,
                       correlationId=correlation, globalPid=GLOBAL_PID, shortName=self.string(name),
                       demangledName=self.string(name + "(unsigned char const*, int)"), mangledName=None,
                       graphNodeId=node)
        if "tensorSizeMinusOneElements" in columns:
            columns["tensorSizeMinusOneElements"] = ""
        self.row("CUPTI_ACTIVITY_KIND_KERNEL", **columns)

    def call(self, name, start, end, tid=PID):
        self.correlation += 1
        self.row("CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=end, eventClass=0, globalTid=GLOBAL_PID | tid,
                 correlationId=self.correlation, nameId=self.string(name), returnValue=0)
        return self.correlation

    def nvtx(self, start, end, tid, text=None, registered=None, domain=0, kind=59, **more):
        self.row("NVTX_EVENTS", start=start, end=end, eventType=kind, globalTid=GLOBAL_PID | tid, text=text,
                 textId=self.string(registered) if registered else None, domainId=domain, **more)

    def close(self):
        self.db.commit()
        self.db.close()


def engine(path, version, plan=STEP, steps=2):
    export, names = Export(path, version), NAMES[version]
    graph = version == "3.28"
    for step in range(steps):
        base = T0 + step * PERIOD
        export.nvtx(base, base + 40_000, PID, text="execute_model %d" % step)
        launch = export.call("cudaGraphLaunch_v10000", base + 1_000, base + 4_000) if graph else None
        for i, (what, stream, start, end) in enumerate(plan):
            correlation = launch or export.call("cudaLaunchKernel_v7000", base + 100 * i, base + 100 * i + 50)
            export.kernel(names.get(what, what + "_kernel"), stream, base + 1000 * start, base + 1000 * end, correlation,
                          100 + i if graph else None)
    if version == "3.22":
        export.kernel(names["lookup"], 13, T0 + 15_000, T0 + 65_000, 3)          # there twice
        export.kernel(names["lookup"], 13, T0 + 500_000, T0 + 400_000, 900)      # backwards
        export.kernel(names["lookup"], 13, 0, 0, 901)                            # times lost
    return export


def refused(folder):
    export = engine(folder + "/graphs.sqlite", "3.16")
    export.table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start end deviceId graphId graphExecId")
    export.row("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=1, end=2, deviceId=0, graphId=1, graphExecId=1)
    export.close()
    export = Export(folder + "/graph_calls.sqlite", "3.16")  # the table is absent: nothing but the calls tell
    export.call("cudaGraphLaunch_v10000", T0, T0 + 10)
    export.close()
    export = engine(folder + "/lost.sqlite", "3.22")
    export.table("DIAGNOSTIC_EVENT", "timestamp timestampType source severity text globalPid")
    export.row("DIAGNOSTIC_EVENT", timestamp=5, timestampType=1, source=1, severity=1, text="Nothing was dropped.")
    export.row("DIAGNOSTIC_EVENT", timestamp=5, timestampType=1, source=1, severity=2,
               text="CUDA buffers ran full: 17 events were dropped.")
    export.close()
    export = engine(folder + "/old_major.sqlite", "3.16")
    export.db.execute("UPDATE META_DATA_EXPORT SET value = '2.9.0' WHERE name = 'EXPORT_SCHEMA_VERSION'")
    export.close()
    export = Export(folder + "/empty_export.sqlite", "3.22", kernels=False)
    export.db.execute("DROP TABLE NVTX_EVENTS")
    export.close()
    db = sqlite3.connect(folder + "/not_an_export.sqlite")
    db.execute("CREATE TABLE IF NOT EXISTS people (name TEXT)")
    db.commit()
    db.close()


# Ours, in microseconds from the start of step s (1000 apart). Threads: 100 computes, 101 reads rows.
STEPS = dict(fetch={1: (20, 120), 14: (130, 250)}, wait=(100, 130), hash=(5, 15))


def steps(path, n=8):
    """Layer 1: fetch 100, stall 30 (read 20, queue 10), hidden 0.7; layer 14: fetch 120, no stall. In odd steps
    layer 1 waits 10 less."""
    export = Export(path, "3.22", kernels=False)
    export.db.execute("UPDATE META_DATA_EXPORT SET value = 'Engram workbench' WHERE name = 'EXPORT_PRODUCT_NAME'")
    export.table("ThreadNames", "nameId priority globalTid")
    for tid, name in [(100, "compute"), (101, "fetch 0")]:
        export.row("ThreadNames", nameId=export.string(name), priority=0, globalTid=GLOBAL_PID | tid)
    export.nvtx(1, None, 100, registered="engram", domain=1, kind=75)

    def put(name, tid, base, span, step, layer=-1, tokens=16):
        payload = {"tokens": tokens, "layer": layer, "bytes": tokens * 24 * 264 if name == "fetch" else -1, "step": step}
        export.nvtx(base + 1000 * span[0], base + 1000 * span[1], tid, registered=name, domain=1,
                    jsonText=json.dumps(payload))

    for step in range(n):
        base, less = T0 + step * PERIOD, 10 * (step % 2)
        put("step", 100, base, (0, 500), step)
        put("hash", 101, base, STEPS["hash"], step)
        put("window", 100, base, (2, 100), step)
        for layer in (1, 14):
            put("fetch", 101, base, STEPS["fetch"][layer], step, layer)
        put("wait", 100, base, (STEPS["wait"][0] + less, STEPS["wait"][1]), step, 1)
        for layer, at, length in [(0, 22, 38), (2, 150, 38), (3, 260, 20), (4, 282, 18), (5, 400, 30)]:
            put("layer", 100, base, (at, at + length), step, layer)
        for layer, at in [(1, 130), (14, 300)]:
            put("project", 100, base, (at, at + 10), step, layer)
            put("gate", 100, base, (at + 10, at + 16), step, layer)
            for stream in range(4):
                export.nvtx(base + 1000 * (at + 12 + stream), None, 100, text="saturated", domain=1, kind=34,
                            doubleValue=0.1 + 0.02 * stream + (0.3 if layer == 14 else 0) + 0.005 * step)
    export.close()


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for version in NAMES:
        engine("%s/engine_%s.sqlite" % (folder, version), version).close()
    engine(folder + "/one_stream.sqlite", "3.16", ONE_STREAM).close()
    refused(folder)
    steps(folder + "/steps.sqlite")


if __name__ == "__main__":
    main()
