#!/usr/bin/env bash
# label: slow
# A run killed with SIGKILL at seeded moments and resumed ends with the points of an unbroken run: no point twice,
# nothing half-written, whole pairs kept. Segments are measured whole, so they must be shorter than the kills are apart.
set -euo pipefail
engram=$1
dir=$(mktemp -d)
trap "rm -rf $dir" EXIT
cd "$dir"
RANDOM=20261129

cat >kill.sweep <<'SWEEP'
[sweep]
name = kill
pairs = 8
segments = 2

[hash]
preset = tiny
corpus = uniform
tokens = 1, 7, 64, 128, 256
variant = all

[collide]
preset = tiny
corpus = uniform
tokens = 256
order = 2, 3
SWEEP

fail() {
    echo "kill_resume: $*" >&2
    exit 1
}
points() { # what a database holds of its runs, without what differs from run to run
    sqlite3 "$1" "SELECT p.point_key, b.outcome, count(DISTINCT r.block_id)
                  FROM run_points r JOIN points p USING (point_key) JOIN block_points b USING (block_id, point_key)
                  GROUP BY 1, 2 ORDER BY 1"
}

started=$(date +%s%3N)
"$engram" run kill.sweep --db=whole.db --data="$dir" >whole.txt 2>whole.err || fail "unbroken run: $(cat whole.err)"

half=$((($(date +%s%3N) - started) / 2)) # milliseconds; kills fall within the first half of a run

kills=0
here=0 # of this database
for attempt in $(seq 1 60); do
    "$engram" run kill.sweep --db=broken.db --data="$dir" >broken.txt 2>broken.err &
    pid=$!
    pause=$((RANDOM % (half + 1)))
    sleep "$((pause / 1000)).$(printf %03d $((pause % 1000)))"
    if kill -9 $pid 2>/dev/null; then
        kills=$((kills + 1))
        here=$((here + 1))
    fi
    code=0
    wait $pid 2>/dev/null || code=$?
    if [ "$code" = 0 ]; then
        [ "$kills" -ge 5 ] && [ "$here" -ge 1 ] && break
        rm -f broken.db* # done too soon: from the start
        here=0
        continue
    fi
    [ "$code" = 137 ] || fail "attempt $attempt ended with $code: $(cat broken.err)"
    if [ -e broken.db ] && "$engram" status --db=broken.db >status.txt 2>/dev/null; then
        grep -qE '^run .* (killed \(|done )' status.txt || fail "status of a killed run: $(head -1 status.txt)"
    fi
    # Workers die with their parent, and the database stays readable and whole.
    [ ! -e broken.db ] || [ "$(sqlite3 broken.db 'PRAGMA integrity_check')" = ok ] || fail "integrity after $kills kills"
done
[ "$code" = 0 ] || fail "not finished after $kills kills"
[ "$kills" -ge 5 ] || fail "only $kills kills"

points whole.db >whole.points
points broken.db >broken.points
diff whole.points broken.points >&2 || fail "points differ after $kills kills"
# A kill may fall between the run's last commit and its exit: then the next call is a run that finds everything.
[ "$(sqlite3 broken.db "SELECT count(*) FROM runs WHERE state <> 'done'")" = 0 ] || fail "an unfinished run is left"
[ "$(sqlite3 broken.db "SELECT count(*) FROM (SELECT 1 FROM blocks b JOIN block_points p USING (block_id)
      GROUP BY point_key HAVING sum(NOT (SELECT is_roof FROM points q WHERE q.point_key = p.point_key)) > 1)")" = 0 ] ||
    fail "a point was planned twice"
[ "$(sqlite3 broken.db "SELECT count(*) FROM samples s LEFT JOIN sample_values v USING (block_id, point_key, segment, pair)
      WHERE v.metric IS NULL")" = 0 ] || fail "a sample without values"

# A third call measures nothing: its run owns the points found.
before=$(sqlite3 broken.db 'SELECT count(*) FROM samples')
runs=$(sqlite3 broken.db 'SELECT count(*) FROM runs')
"$engram" run kill.sweep --db=broken.db --data="$dir" >again.txt 2>again.err || fail "again: $(cat again.err)"
[ "$(sqlite3 broken.db 'SELECT count(*) FROM samples')" = "$before" ] || fail "measured again"
[ "$(sqlite3 broken.db 'SELECT count(*) FROM runs')" = $((runs + 1)) ] || fail "no run of its own"
echo "kill_resume: $kills kills, $(wc -l <broken.points) points"
