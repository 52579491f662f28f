#!/usr/bin/env bash
# label: slow
# Faults while a run is measuring: a worker killed or stopped, a full disk, signals, a second run, failing
# allocations. Each ends with the documented exit code, a whole database, and the same command going on to the end.
# Arguments: the program, the source folder.
set -u
engram=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export ENG_DATA=$work/data
failures=0

cat >long.sweep <<'SWEEP'
[sweep]
pairs = 80
segments = 2

[hash]
preset = tiny
corpus = uniform
tokens = 64, 512, 4096
variant = naive, portable
SWEEP
N_POINTS=6

fail() { echo "FAIL: $*"; failures=1; }
sql() { sqlite3 "$1" "$2"; }
whole() { [ "$(sql "$1" 'PRAGMA integrity_check')" = ok ] || fail "$2: the database is damaged"; }
start() { # a run in the background, and a moment into it
    rm -f a.db*
    "$engram" run long.sweep --db=a.db >stdout 2>stderr &
    run=$!
    for _ in $(seq 200); do
        [ -s a.db ] && [ "$(sql a.db 'SELECT count(*) > 20 FROM samples' 2>/dev/null)" = 1 ] && return
        sleep 0.02
    done
    fail "the run does not start: $(cat stderr)"
}
stop_worker() { # stops the run's worker in the middle of its life and puts its process id into $child
    for _ in $(seq 500); do
        read -r child _ <"/proc/$run/task/$run/children"
        [ -n "$child" ] && kill -STOP "$child" 2>/dev/null && grep -q '^State:.T' "/proc/$child/status" 2>/dev/null && return
        sleep 0.01
    done
    fail "the run has no worker: $(cat stderr)"
}
outcomes() { # how many named points have an outcome
    sql a.db "SELECT count(*) FROM block_points JOIN points USING (point_key) WHERE is_roof = 0 AND outcome = '$1'"
}
ended() { # ended NAME CODE TEXT: how the run in the background ended; CODE points: 2 if any failed, roofs too
    local got=0 code=$2
    wait "$run" || got=$?
    [ "$code" != points ] || code=$(sql a.db "SELECT 2 * max(outcome = 'failed') FROM block_points")
    [ "$got" = "$code" ] || fail "$1: exit $got, expected $code: $(cat stderr)"
    grep -qF -- "$3" stderr || fail "$1: no '$3' in: $(cat stderr)"
    whole a.db "$1"
}
goes_on() { # the same command ends well and all points are measured
    "$engram" run long.sweep --db=a.db >stdout 2>stderr || fail "$1: the same command ends with $?: $(cat stderr)"
    [ "$(sql a.db "SELECT count(DISTINCT point_key) FROM block_points JOIN points USING (point_key)
                   WHERE is_roof = 0 AND outcome = 'measured'")" = $N_POINTS ] || fail "$1: points are missing"
    whole a.db "$1"
}

# ---- a worker is lost: its point fails, the others are measured in a new segment ----
start
stop_worker
kill -9 "$child"
ended "killed worker" points "worker ended with signal 9"
[ "$(outcomes failed)" = 1 ] && [ "$(outcomes measured)" = $((N_POINTS - 1)) ] ||
    [ "$(outcomes measured)" = $N_POINTS ] || fail "killed worker: $(outcomes failed) failed, $(outcomes measured) measured"
[ "$(sql a.db "SELECT count(*) FROM segments WHERE state = 'done'")" -ge 6 ] || fail "killed worker: segments are missing"
goes_on "killed worker"

export ENG_WORKER_TIMEOUT_S=1
start
stop_worker
ended "hanging worker" points "no answer for 1 s (killed)"
goes_on "hanging worker"
unset ENG_WORKER_TIMEOUT_S

# ---- signals ----
for signal in INT TERM; do
    start
    kill -$signal $run
    ended "SIG$signal" 130 "the same command goes on"
    [ "$(outcomes failed)" = 0 ] || fail "SIG$signal failed points"
    [ "$(sql a.db 'SELECT state FROM runs')" = interrupted ] || fail "SIG$signal: state"
    goes_on "SIG$signal"
    grep -q resumed stderr || fail "SIG$signal: a new run instead of a resumed one"
done

# ---- two runs at once; reading does not disturb ----
start
said=$("$engram" run long.sweep --db=a.db 2>&1)
[ $? = 7 ] || fail "a second run: $said"
grep -qF "a.db: another run is active on this database (process $run)" <<<"$said" || fail "second run: $said"
"$engram" status --db=a.db >status.txt || fail "status during a run"
grep -q running status.txt || fail "status does not tell that it runs"
ended "first of two runs" 0 "new run"

# ---- the disk is full ----
for pages in 1 60 75; do
    rm -f a.db*
    ENG_DB_MAX_PAGES=$pages "$engram" run long.sweep --db=a.db >stdout 2>stderr
    [ $? = 7 ] && grep -q 'a.db: disk full' stderr || fail "disk full at $pages pages: $(cat stderr)"
    [ ! -s a.db ] || whole a.db "disk full at $pages pages"
done
[ "$(outcomes failed)" = 0 ] || fail "a full disk failed points"
goes_on "disk full"
rm -f b.db*
(ulimit -f 64 && "$engram" run long.sweep --db=b.db >stdout 2>stderr)
[ $? = 7 ] && grep -q 'b.db: ' stderr || fail "limit on file size: $(cat stderr)"
ENG_FAIL_WRITE=2000 "$engram" report --db=a.db --out=full >stdout 2>stderr
[ $? = 7 ] && grep -q 'full/.*: cannot write: No space' stderr || fail "report on a full disk: $(cat stderr)"
[ ! -e full/index.html ] || fail "a failed report left a page"

# ---- allocations that fail: exit 7, or failed points when a worker's did ----
cat >short.sweep <<'SWEEP'
[sweep]
pairs = 1
segments = 1
[hash]
preset = tiny
corpus = uniform
tokens = 16
variant = portable
[collide]
preset = tiny
corpus = uniform
tokens = 64
SWEEP
failing() { # failing STRIDE ARGUMENT...: every STRIDE-th allocation, until three in a row come too late to matter
    local stride=$1 n=1 fine=0 got
    shift
    while [ $fine -lt 3 ] && [ $n -lt 3000 ]; do
        rm -f m.db*
        [ "$1" = run ] || cp base.db m.db
        got=0
        ENG_FAIL_ALLOC=$n timeout 60 "$engram" "$@" >stdout 2>stderr || got=$?
        [ $got = 0 ] && fine=$((fine + 1)) || fine=0
        case $got in
        0) ;;
        2) [ "$1" = run ] && grep -q 'failed: ' stderr || fail "allocation $n of $*: $(cat stderr)" ;;
        7) grep -q '^error engram: .*out of memory' stderr || fail "allocation $n of $*: $(cat stderr)" ;;
        *) fail "allocation $n of $* ends with $got: $(cat stderr)" ;;
        esac
        [ ! -s m.db ] || whole m.db "allocation $n of $*"
        [ "$failures" = 0 ] || return # the next ones would say the same
        n=$((n + stride))
    done
    [ $n -gt $((4 * stride)) ] || fail "no allocation of $* was reached"
}
"$engram" run short.sweep --db=base.db >stdout 2>stderr || fail "base run: $(cat stderr)"
sql base.db 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
failing 47 run short.sweep --db=m.db
# Every single one on the way of plan, ledger and outputs (SQLite's own: tests/unit/core/test_db_memory.c).
failing 1 run short.sweep --db=m.db --dry-run
failing 1 status --db=m.db
failing 1 runs --db=m.db
failing 1 export --db=m.db
failing 1 export --samples --db=m.db
failing 1 compare latest latest --db=m.db
failing 1 list
# Reports too; their pictures are only their last bytes, which is what the program looks at.
cat >gnuplot <<'SH'
#!/bin/sh
eval "$3"
case $target in svg) printf '</svg>' >$out ;; *) printf 'IEND\256\102\140\202' >$out ;; esac
SH
chmod +x gnuplot
export ENG_GNUPLOT=$work/gnuplot
failing 1 report --db=m.db --out=page
failing 1 report kernels --db=m.db --out=page
[ "$failures" = 0 ] && echo "faults are survived"
exit "$failures"
