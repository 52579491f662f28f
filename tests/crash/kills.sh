#!/usr/bin/env bash
# label: slow
# Killed at moments reached for sure (ENG_KILL_AT, see base/kill_point.h), in half-written commits and at random times,
# while planning, sampling, committing, reporting, exporting and merging: 60 and more kills, then the database holds
# what an unbroken run holds. Arguments: the program, the source folder.
set -euo pipefail
engram=$1
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
RANDOM=20261130
fail() {
    echo "kills: $*" >&2
    exit 1
}
declare -A kills
classes='plan sample commit torn random merge export report' # each killed 8 times at least
cat >kill.sweep <<'SWEEP'
[sweep]
name = kill
pairs = 6
segments = 2

[hash]
preset = tiny
corpus = uniform
tokens = 1, 64

[gather]
preset = laptop
corpus = uniform
rows = 2^10
tokens = 4
out = bf16, f32

[collide]
preset = tiny
corpus = uniform
tokens = 256
order = 2, 3
SWEEP
run() { "$engram" run kill.sweep --db="$1" --data="$dir" >run.txt 2>run.err; }
whole() { # the database is sound, and what refers to something finds it
    [ -e "$1" ] || return 0
    [ "$(sqlite3 "$1" 'PRAGMA integrity_check')" = ok ] || fail "$2: integrity"
    [ -z "$(sqlite3 "$1" 'PRAGMA foreign_key_check' 2>&1)" ] || fail "$2: a row refers to nothing"
    [ "$(sqlite3 "$1" "SELECT count(*) FROM sqlite_master WHERE name = 'samples'")" = 0 ] && return 0
    [ "$(sqlite3 "$1" "SELECT count(*) FROM samples s LEFT JOIN sample_values v
          USING (block_id, point_key, segment, pair) WHERE v.metric IS NULL")" = 0 ] || fail "$2: half a sample"
    [ "$(sqlite3 "$1" "SELECT count(*) FROM runs r WHERE EXISTS (SELECT 1 FROM run_points l WHERE l.run_id = r.run_id)
          AND (SELECT count(*) FROM run_points l WHERE l.run_id = r.run_id) <> $n_points")" = 0 ] || fail "$2: half a plan"
}
# killed WHAT COMMAND...: the command must end by SIGKILL.
killed() {
    local what=$1 code=0
    shift
    "$@" || code=$?
    [ "$code" = 137 ] || fail "$what ended with $code instead of being killed: $(cat run.err)"
    kills[${what%%:*}]=$((${kills[${what%%:*}]:-0} + 1))
}
at() { # PLACE:N COMMAND...
    local place=$1
    shift
    killed "$place" env ENG_KILL_AT="$place" "$@"
}
run_args=(run kill.sweep --data="$dir")
quiet() { "$@" >run.txt 2>run.err; }

run whole.db || fail "unbroken run: $(cat run.err)"
n_points=$(sqlite3 whole.db 'SELECT count(*) FROM run_points')

# ---- planning: nothing of a plan is there, or all of it ----
for i in 1 2 3 4 5 6 7 8; do
    quiet at plan:$((1 + RANDOM % n_points)) "$engram" "${run_args[@]}" --db=broken.db
    whole broken.db plan
    [ "$(sqlite3 broken.db 'SELECT count(*) FROM run_points')" = 0 ] || fail "half a plan after kill $i"
done
# ---- in a sample, and before and after commits ----
for i in 1 2 3 4 5 6 7 8; do
    quiet at sample:$((1 + RANDOM % 9)) "$engram" "${run_args[@]}" --db=broken.db
    whole broken.db sample
    quiet at commit:$((1 + RANDOM % 12)) "$engram" "${run_args[@]}" --db=broken.db
    whole broken.db commit
done
# ---- in the middle of a write of a commit ----
"${CC:-cc}" -shared -fPIC -O1 -o torn.so "$here/torn_write.c" -ldl || fail "cannot build torn_write.c"
preload="$(ldd "$engram" | awk '/libasan/ { print $3 }') $dir/torn.so" # a sanitizer must come first
for i in 1 2 3 4 5 6 7 8; do
    quiet killed torn env LD_PRELOAD="$preload" ENG_TORN_WRITE=$((2 + RANDOM % 40)) \
        "$engram" "${run_args[@]}" --db=broken.db
    whole broken.db torn
done
quiet killed torn env LD_PRELOAD="$preload" ENG_TORN_WRITE=7 "$engram" "${run_args[@]}" --db=first.db # creating it
[ ! -e first.db ] || "$engram" "${run_args[@]}" --db=first.db >run.txt 2>run.err || fail "after a torn creation: $(cat run.err)"
# ---- at random times ----
random=0
for i in $(seq 1 40); do
    "$engram" "${run_args[@]}" --db=broken.db >run.txt 2>run.err &
    pid=$!
    sleep "0.$(printf %03d $((50 + RANDOM % 350)))"
    if kill -9 $pid 2>/dev/null; then random=$((random + 1)); fi
    code=0
    wait $pid 2>/dev/null || code=$?
    whole broken.db random
    [ "$code" = 0 ] || [ "$code" = 137 ] || fail "random kill $i ended with $code: $(cat run.err)"
    [ "$random" -lt 8 ] || break
    [ "$code" != 0 ] || rm -f broken.db* # done already: from the start
done
kills[random]=$random
run broken.db || fail "the last run: $(cat run.err)"

# ---- in a trace: no half file, and the run goes on to the same points ----
traced=(run step -a preset=laptop -a corpus=uniform -a rows=2^8 -a tokens=2 -a pairs=2 -a segments=1 --trace)
if "$engram" trace record --overhead >run.txt 2>&1; then
    "$engram" "${traced[@]}" --db=unbroken/t.db --data="$dir" >run.txt 2>run.err || fail "trace: $(cat run.err)"
    # Moments: the file is there, each of its rows, four around its name, two around its row in the database.
    last=$((13 + $(sqlite3 unbroken/traces/*.sqlite 'SELECT count(*) FROM NVTX_EVENTS')))
    for i in 1 2 20 100 $((last - 6)) $((last - 5)) $((last - 4)) $((last - 3)) $((last - 2)) $((last - 1)) "$last"; do
        quiet at trace:"$i" "$engram" "${traced[@]}" --db=traced/t.db --data="$dir"
        n_points=1 whole traced/t.db trace
        for f in traced/traces/*.sqlite; do
            [ ! -e "$f" ] || [ "$(sqlite3 "$f" 'PRAGMA integrity_check')" = ok ] || fail "trace kill $i: half a file"
        done
    done
    "$engram" "${traced[@]}" --db=traced/t.db --data="$dir" >run.txt 2>run.err || fail "after kills in traces: $(cat run.err)"
    [ "$(sqlite3 traced/t.db "SELECT count(*) FROM artifacts")" = 1 ] || fail "the point has no trace after kills"
    [ "$(ls traced/traces)" = "$(sqlite3 traced/t.db "SELECT substr(path, 8) FROM artifacts")" ] ||
        fail "kills in traces left: $(ls traced/traces)"
    classes+=" trace"
fi # else built without the NVTX headers: no traces

# ---- the same points as unbroken, none twice, all pairs whole ----
points() {
    sqlite3 "$1" "SELECT p.point_key, b.outcome, p.axes_json, count(DISTINCT r.block_id) FROM run_points r
        JOIN points p USING (point_key) JOIN block_points b USING (block_id, point_key) GROUP BY 1, 2 ORDER BY 1"
}
check_same() {
    diff <(points whole.db) <(points "$1") >&2 || fail "$1: points differ"
    [ "$(sqlite3 "$1" "SELECT count(*) FROM runs WHERE state <> 'done'")" = 0 ] || fail "$1: an unfinished run is left"
    [ "$(sqlite3 "$1" "SELECT count(*) FROM (SELECT 1 FROM block_points JOIN points USING (point_key)
          WHERE is_roof = 0 GROUP BY point_key HAVING count(*) > 1)")" = 0 ] || fail "$1: a point was planned twice"
    # Pairs of broken segments count, so the last segment may be shorter; within a segment nobody misses a pair.
    [ "$(sqlite3 "$1" "SELECT count(*) FROM (SELECT 1 FROM (SELECT s.block_id, s.segment, s.point_key, count(*) AS n
          FROM samples s JOIN segments g USING (block_id, segment) JOIN block_points p USING (block_id, point_key)
          WHERE g.state = 'done' AND p.outcome = 'measured' GROUP BY 1, 2, 3) GROUP BY block_id, segment
          HAVING min(n) <> max(n))")" = 0 ] || fail "$1: a whole segment with pairs missing"
    [ "$(sqlite3 "$1" "SELECT count(*) FROM block_points p JOIN points q USING (point_key) JOIN blocks b USING (block_id)
          WHERE q.is_roof = 0 AND p.outcome = 'measured' AND (SELECT count(*) FROM samples s WHERE
          s.block_id = p.block_id AND s.point_key = p.point_key) < b.segments_wanted * b.pairs_wanted")" = 0 ] ||
        fail "$1: a point with samples missing"
}
check_same broken.db
[ ! -e first.db ] || check_same first.db

# ---- writing an export: the old file or the new one ----
"$engram" export --db=broken.db --samples --out=good.csv 2>run.err || fail "export: $(cat run.err)"
lines=$(wc -l <good.csv)
for i in 1 2 3 4 5 6 7 8; do
    place=write:$((1 + RANDOM % lines))
    [ "$i" -lt 7 ] || place=rename:1
    echo old >out.csv
    quiet at $place "$engram" export --db=broken.db --samples --out=out.csv
    [ "$(cat out.csv)" = old ] || fail "export killed at $place: half a file"
    kills[export]=$((${kills[export]:-0} + 1))
done
"$engram" export --db=broken.db --samples --out=out.csv 2>run.err && cmp -s out.csv good.csv || fail "export after kills"
# ---- writing a report: every file is old, or new and whole ----
before=$(sqlite3 broken.db .dump | sha256sum)
"$engram" report --db=broken.db --out=report >run.txt 2>run.err || fail "report: $(cat run.err)"
mv report good # the page names its own folder
same_files() {
    local f
    for f in report/*; do
        case $f in *.tmp*) continue ;; esac
        [ ! -f "$f" ] || cmp -s "$f" "good/${f#report/}" || [ "$(head -c 3 "$f")" = old ] || fail "$1: $f is half a file"
    done
}
for i in 1 2 3 4 5 6 7 8; do
    place=write:$((1 + RANDOM % 60))
    [ "$i" -lt 5 ] || place=rename:$((1 + RANDOM % 12))
    [ ! -d report ] || [ "$i" -lt 6 ] || for f in report/*; do [ -d "$f" ] || echo old >"$f"; done
    quiet at $place "$engram" report --db=broken.db --out=report
    same_files "$place"
    kills[report]=$((${kills[report]:-0} + 1))
done
"$engram" report --db=broken.db --out=report >run.txt 2>run.err || fail "report after kills: $(cat run.err)"
same_files end
[ "$before" = "$(sqlite3 broken.db .dump | sha256sum)" ] || fail "a report changed the database"

# ---- merging: all or nothing ----
"$engram" run collide -a preset=tiny -a corpus=uniform -a order=2 -a tokens=64 --db=into.db --data="$dir" >run.txt 2>run.err ||
    fail "collide: $(cat run.err)"
before=$(sqlite3 into.db .dump | sha256sum)
for i in 1 2 3 4 5 6 7 8; do
    quiet at merge:$((1 + RANDOM % 400)) "$engram" merge whole.db --db=into.db
    whole_at=$(sqlite3 into.db .dump | sha256sum)
    [ "$before" = "$whole_at" ] || fail "half-merged"
done
"$engram" merge whole.db --db=into.db >run.txt 2>run.err || fail "merge after kills: $(cat run.err)"
[ "$(sqlite3 into.db 'SELECT count(*) FROM samples')" -gt "$(sqlite3 whole.db 'SELECT count(*) FROM samples')" ] ||
    fail "merge after kills brought nothing"

total=0
told=
for what in $classes; do
    [ "${kills[$what]:-0}" -ge 8 ] || fail "only ${kills[$what]:-0} kills in $what"
    total=$((total + kills[$what]))
    told+=" $what ${kills[$what]}"
done
[ "$total" -ge 50 ] || fail "only $total kills"
echo "kills: $total kills ($told ), $n_points points the same"
