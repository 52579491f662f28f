#!/usr/bin/env bash
# How a run samples, from the outside: why each point stopped, caches as an axis, what a lifetime notes of
# its clocks; and mistakes of a command line that must not pass unseen. Arguments: the program, the source.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export ENG_DATA=$work
failures=0
fail() { echo "FAIL: $*"; failures=1; }
expect() { # CODE PATTERN ARGUMENT...: exit code, and a line of output or of the error that matches
    local code=$1 pattern=$2 output got=0
    shift 2
    output=$("$engram" "$@" 2>&1) || got=$?
    [ "$got" = "$code" ] || fail "$*: exit $got, expected $code: $output"
    grep -qE -- "$pattern" <<<"$output" || fail "$*: no '$pattern' in: $output"
}
count() { sqlite3 a.db "$1"; }
stops() { # SWEEP EXPECTED: reasons of the newest run's named points
    local got
    got=$(count "SELECT group_concat(DISTINCT stop_reason) FROM block_points b JOIN points p USING (point_key)
        JOIN blocks k USING (block_id) WHERE p.is_roof = 0 AND k.run_id =
        (SELECT run_id FROM runs ORDER BY started_utc DESC, rowid DESC LIMIT 1)")
    [ "$got" = "$2" ] || fail "$1: stopped for '$got', not '$2'"
}
tiny=(-a preset=tiny -a corpus=uniform -a variant=portable --db=a.db --fresh)

# ---- why sampling ended ----
expect 0 'measured' run hash "${tiny[@]}" -a pairs=8 -a segments=20 -a precision=50%
stops precision precise
[ "$(count "SELECT count(*) FROM samples JOIN points USING (point_key) WHERE is_roof = 0")" -lt 160 ] ||
    fail "a wide precision took all pairs"
[ "$(count "SELECT min(n) FROM (SELECT count(*) AS n FROM samples JOIN points USING (point_key)
    WHERE is_roof = 0 GROUP BY point_key)")" -ge 31 ] || fail "stopped before 31 pairs"
expect 0 'measured' run hash "${tiny[@]}" -a pairs=2 -a segments=3
stops pairs 'pairs reached'
expect 0 'measured' run hash "${tiny[@]}" -a pairs=400 -a segments=2 -a budget_ms=40
stops budget 'time budget'
expect 0 '^sampling ended: time budget 1$' status --db=a.db
expect 0 '^sampling ended: pairs reached 1$' run hash "${tiny[@]}" -a pairs=2 -a segments=1
expect 0 'precision = 0.01%' run hash "${tiny[@]}" -a pairs=20 -a precision=0.01% --dry-run
expect 1 'precision ends sampling after 31 pairs in 2 segments' run hash "${tiny[@]}" -a precision=1%

# ---- what a lifetime notes ----
[ "$(count "SELECT count(*) FROM segments WHERE evidence_json ->> '$.sampling.clock_step_ns' > 0
    AND evidence_json ->> '$.sampling.sample_ns' >= 1000000 AND evidence_json ->> '$.sampling.warmed_up' > 0")" = \
    "$(count 'SELECT count(*) FROM segments')" ] || fail "a lifetime says nothing of its clocks"
for key in steal_ticks minor_faults major_faults involuntary_switches mhz throttles load counters.cycles \
    sampling.cpu sampling.numa_node sampling.empty_window_ns; do
    [ "$(count "SELECT count(*) FROM segments WHERE evidence_json ->> '\$.$key' IS NULL")" = 0 ] || fail "no $key"
done
[ "$(count "SELECT count(*) FROM machines WHERE description_json ->> '\$.numa_nodes' > 0
    AND description_json ->> '\$.caches[0]' IS NOT NULL")" = 1 ] || fail "no topology"
[ "$(count "SELECT count(DISTINCT metric) FROM sample_values WHERE metric IN ('counter_page_faults',
    'counter_switches')")" = 2 ] || fail "samples without faults and switches"

expect 0 '(ok|missing) +thermal throttling' doctor --db=a.db
expect 0 'topology: [0-9]+ cores, [0-9]+ NUMA nodes' doctor --db=a.db

# ---- caches ----
expect 0 'cache=cold .*measured' run gather "${tiny[@]}" -a rows=101 -a tokens=2 -a cache=rotate,warm,cold -a pairs=2 \
    -a segments=1
[ "$(count "SELECT count(DISTINCT point_key) FROM points WHERE experiment = 'gather' AND is_roof = 0")" = 3 ] ||
    fail "the values of cache share a key"
[ "$(count "SELECT max(inner_iterations) FROM samples JOIN points USING (point_key)
    WHERE axes_json ->> '$.cache' = 'cold'")" = 1 ] || fail "a cold sample of several calls"
[ "$(count "SELECT count(*) FROM segments WHERE evidence_json ->> '$.sampling.flush_bytes' > 0")" = 1 ] ||
    fail "not one lifetime flushed"

# ---- what was expected of each point ----
expect 0 '^point +us +expected us +because of$' run gather "${tiny[@]}" -a rows=101 -a tokens=2 -a pairs=6 \
    -a segments=1
expect 0 '^gather portable .*(roof|flops|pages|latency)' run gather "${tiny[@]}" -a rows=101 -a tokens=2 \
    -a pairs=6 -a segments=1

# ---- mistakes ----
expect 1 'heads was given before, as heads=2; write all its values as one list' run gather -a heads=2 -a heads=4 --db=b.db
expect 0 'portable +conv_gbps .*measured' run conv -a preset=tiny -a hidden=64 -a tokens=1,9 -a pairs=2 \
    -a segments=1 --db=b.db
expect 0 'warning run: threads=999: this machine has [0-9]+ processors' run gather -a preset=tiny -a corpus=uniform \
    -a threads=999 --dry-run
expect 0 '^ +[0-9.]+ s  hash portable ' status --db=a.db "$(count "SELECT run_id FROM runs ORDER BY started_utc LIMIT 1")"

# ---- a roof that fails ----
if command -v gcc >/dev/null; then
    sed -e 's/\.checked = true,/.roof = true,/' -e 's/^    (void)problem, (void)err;/    __builtin_trap();/' \
        "$source/docs/examples/gather_plugin.c" >roof.c
    if gcc -O1 -shared -fPIC -I"$source/include" -o roof.so roof.c 2>gcc.txt; then
        expect 2 'failed: worker ended with signal' run gather --plugin=./roof.so "${tiny[@]}" -a rows=101 \
            -a row_dims=32 -a tokens=2 -a pairs=2 -a segments=1
    else
        fail "the failing roof does not compile: $(head -3 gcc.txt)"
    fi
fi
[ "$failures" = 0 ] && echo "sampling holds"
exit "$failures"
