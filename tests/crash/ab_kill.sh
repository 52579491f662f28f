#!/usr/bin/env bash
# label: slow
# engram ab killed at moments reached for sure (ENG_KILL_AT), in the plan, in samples, before and after commits, and
# interrupted: the same command goes on, takes only what is missing, and ends with one verdict a point. Arguments: the
# program, the source folder.
set -u
engram=$1
source=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
RANDOM=20261201
failures=0
fail() { echo "FAIL: $*"; failures=1; }
sql() { sqlite3 a.db "$1"; }
for kind in old 'new -g -falign-functions=128'; do
    set -- $kind
    gcc -O3 -shared -fPIC -I"$source/include" "${@:2}" -o "$1.so" "$source/docs/examples/gather_plugin.c" || exit 1
done
SEGMENTS=8 PAIRS=6 POINTS=2
short=("$engram" ab old.so new.so gather -a corpus=synthetic -a rows=256 -a heads=1 -a tokens=1,4 --pairs=$PAIRS
    --db=a.db --data=.)
ab=("${short[@]}" --segments=$SEGMENTS)
SAMPLES=$((3 * POINTS * SEGMENTS * PAIRS))

kills=0
for place in plan:1 plan:5 sample:1 sample:20 commit:3 commit:9 commit:12 sample:$((19 + RANDOM % 60)) \
    commit:$((4 + RANDOM % 12)) sample:$((19 + RANDOM % 90)) commit:$((4 + RANDOM % 12)) commit:1 commit:2; do
    before=$(sql 'SELECT count(*) FROM samples' 2>/dev/null || echo 0)
    ENG_KILL_AT=$place "${ab[@]}" >out.txt 2>err.txt
    code=$?
    [ $code = 0 ] && break # so far that this place is not reached any more
    [ $code = 137 ] || fail "$place ended with $code: $(cat err.txt)"
    kills=$((kills + 1))
    [ "$(sql 'PRAGMA integrity_check')" = ok ] || fail "$place: integrity"
    [ -z "$(sql 'PRAGMA foreign_key_check')" ] || fail "$place: a row refers to nothing"
    [ "$(sql 'SELECT count(*) FROM samples')" -ge "${before:-0}" ] || fail "$place: samples are gone"
    [ "$(sql "SELECT count(*) % (3 * $PAIRS) FROM samples")" = 0 ] || fail "$place: half a segment"
    [ "$(sql 'SELECT count(*) FROM runs')" -le 1 ] || fail "$place: a new run instead of a resumed one"
done
[ $kills -ge 8 ] || fail "only $kills kills"
"${ab[@]}" >out.txt 2>err.txt || fail "the last call: $(cat err.txt)"
grep -q "^$POINTS points: " out.txt || fail "no sum: $(cat out.txt)"
# After the last kill everything was measured, or the run had ended already and this was a second one.
runs=$(sql 'SELECT count(*) FROM runs')
[ "$runs" = 1 ] || [ "$code" = 0 ] || fail "$runs runs"
[ "$(sql "SELECT count(*) FROM runs WHERE state <> 'done'")" = 0 ] || fail "an unfinished run is left"
[ "$(sql 'SELECT count(*) FROM verdicts')" = $((POINTS * runs)) ] || fail "$(sql 'SELECT count(*) FROM verdicts') verdicts"
[ "$(sql 'SELECT count(*) FROM samples')" = $((SAMPLES * runs)) ] ||
    fail "$(sql 'SELECT count(*) FROM samples') samples, not $((SAMPLES * runs))"
[ "$(sql 'SELECT count(*) FROM residuals WHERE pass')" -ge $((3 * POINTS)) ] || fail "arms without a residual"

# ---- a signal: exit 130, and the same command goes on; --fresh does not ----
rm -f a.db*
"${short[@]}" --segments=60 >out.txt 2>err.txt &
pid=$!
for _ in $(seq 200); do
    [ "$(sql 'SELECT count(*) FROM samples' 2>/dev/null || echo 0)" -gt 0 ] && break
    sleep 0.05
done
kill -INT $pid
wait $pid
[ $? = 130 ] && grep -q 'the same command goes on' err.txt || fail "interrupted: $(cat err.txt)"
before=$(sql 'SELECT count(*) FROM samples')
"${short[@]}" --segments=60 --fresh --budget=1 >out.txt 2>err.txt || fail "--fresh: $(cat err.txt)"
[ "$(sql 'SELECT count(*) FROM runs')" = 2 ] || fail "--fresh resumed"
[ "$(sql "SELECT count(*) FROM samples JOIN blocks USING (block_id) JOIN runs USING (run_id)
    WHERE runs.state = 'interrupted'")" = "$before" ] || fail "--fresh added to another run"
[ "$failures" = 0 ] && echo "ab_kill: $kills kills"
exit "$failures"
