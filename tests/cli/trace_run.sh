#!/usr/bin/env bash
# label: fast
# engram run --trace: a trace per measured point from samples of its own, which no summary, export, comparison or
# plan ever counts as a time. skips: no NVTX headers. Arguments: the program, the source folder.
set -u
engram=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset NVTX_INJECTION64_PATH
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
is() { # EXPECTED FILE SQL
    local got
    got=$(sqlite3 "$2" "$3")
    [ "$got" = "$1" ] || fail "$2: '$got' instead of '$1': $3"
}
"$engram" trace record --overhead >/dev/null 2>&1 || { echo "skipped: no NVTX headers"; exit 77; }
tiny=(-a preset=laptop -a corpus=uniform -a rows=2^8 -a tokens=2 -a pairs=3 -a segments=2)

# ---- a file per point, from 20 samples of one segment ----
expect 0 '1 points measured' run step "${tiny[@]}" --trace --db=out/a.db
file=out/$(sqlite3 out/a.db 'SELECT path FROM artifacts')
[ -f "$file" ] || fail "the artifact names no file: $file"
is "$(sha256sum <"$file" | cut -d' ' -f1) $(stat -c %s "$file")" out/a.db "SELECT sha256 || ' ' || bytes FROM artifacts"
is '20 1 1' out/a.db "SELECT count(*) || ' ' || min(inner_iterations) || ' ' || count(DISTINCT segment) FROM samples
    WHERE traced = 1"
is '0' out/a.db "SELECT count FROM drops WHERE what = 'trace events'"
for range in step window fetch wait layer hash gather gate; do
    is 20 "$file" "SELECT count(*) FROM NVTX_EVENTS JOIN StringIds ON id = textId WHERE value = '$range'"
done
is 20 "$file" "SELECT count(*) FROM NVTX_EVENTS WHERE text = 'saturated' AND doubleValue BETWEEN 0 AND 1"
is 2 "$file" "SELECT count(DISTINCT globalTid) FROM NVTX_EVENTS WHERE eventType = 59"
# Every fetch and wait lies within its step, on whichever thread.
is 40 "$file" "SELECT count(*) FROM NVTX_EVENTS e JOIN StringIds n ON n.id = e.textId AND n.value IN ('fetch', 'wait')
    JOIN NVTX_EVENTS s ON s.textId = (SELECT id FROM StringIds WHERE value = 'step') AND s.start <= e.start
    AND e.end <= s.end AND json_extract(s.jsonText, '\$.step') = json_extract(e.jsonText, '\$.step')"
expect 0 '(^| )20 ' trace overlap "$file"
expect 0 'saturated' trace saturation "$file"

# ---- traced samples are no times ----
is '6' out/a.db "SELECT n FROM v_summary WHERE metric = 'wall_us'"
is 0 out/a.db "SELECT count(*) FROM v_summary v WHERE v.metric = 'wall_us' AND median NOT IN (SELECT median FROM
    (SELECT avg(value) AS median FROM (SELECT value, row_number() OVER (ORDER BY value) AS r, count(*) OVER () AS n
     FROM sample_values JOIN samples USING (block_id, point_key, segment, pair) WHERE traced = 0 AND metric = 'wall_us')
     WHERE r IN ((n + 1) / 2, (n + 2) / 2)))"
[ "$("$engram" export --db=out/a.db --format=csv | grep -c ',6,')" -gt 0 ] || fail "the export's n is not 6"
[ "$("$engram" export --db=out/a.db --samples --format=csv | tail -n +2 | wc -l)" = 26 ] || fail "samples of the export"
# Slow traced samples, of which there are more than others, would be the medians of a comparison, if they counted.
sqlite3 out/a.db "UPDATE samples SET wall_ns = 1000000000000, cpu_ns = 1000000000000 WHERE traced = 1;
    UPDATE sample_values SET value = 1e12 WHERE (block_id, point_key, segment, pair) IN
    (SELECT block_id, point_key, segment, pair FROM samples WHERE traced = 1)"
is '1' out/a.db "SELECT count(*) FROM v_summary WHERE metric = 'wall_us' AND median < 1e9 AND ci_hi < 1e9"
expect 0 '1 points measured' run step "${tiny[@]}" --fresh --db=out/a.db
runs=($(sqlite3 out/a.db 'SELECT run_id FROM runs ORDER BY started_utc'))
expect 5 ' not judged +[0-9.]+ +[0-9.]+ ' compare "${runs[0]}" "${runs[1]}" --db=out/a.db
"$engram" compare "${runs[0]}" "${runs[1]}" --db=out/a.db >compare.txt 2>&1
grep -qE '[0-9]{9}' compare.txt && fail "traced samples in a comparison: $(cat compare.txt)"

# ---- found points are not traced again, which is told; --fresh is, into a file of its own; N samples; no roofs ----
expect 0 '1 points found measured have no trace; --fresh' run step "${tiny[@]}" --trace --db=out/a.db
is 1 out/a.db "SELECT count(*) FROM artifacts"
expect 0 'points measured' run step "${tiny[@]}" --trace --fresh --db=out/a.db
is "$(sha256sum <"$file" | cut -d' ' -f1)" out/a.db "SELECT sha256 FROM artifacts WHERE 'out/' || path = '$file'"
is '2 2' out/a.db "SELECT count(*) || ' ' || count(DISTINCT path) FROM artifacts"
"$engram" run step "${tiny[@]}" --trace --db=out/a.db 2>&1 | grep -q 'have no trace' && fail "traced points are told untraced"
expect 0 'points measured' run gather "${tiny[@]}" -a trace=25 -a variant=portable --db=out/b.db
is '1 25 0' out/b.db "SELECT count(DISTINCT point_key) || ' ' || count(*) || ' ' || sum(is_roof) FROM samples JOIN points
    USING (point_key) WHERE traced = 1"
expect 0 'points measured' run collide -a preset=tiny -a corpus=uniform -a tokens=64 --trace --db=out/c.db
is 0 out/c.db "SELECT count(*) FROM artifacts"

# ---- GPU work: collected in the worker, or said why not ----
fake=$(dirname "$engram")/tests/fake_cupti.so
if [ -e "$fake" ]; then
    ENG_CUPTI_LIBRARY=$fake expect 0 'points measured' run step "${tiny[@]}" --trace --db=out/g.db
    file=out/$(sqlite3 out/g.db 'SELECT path FROM artifacts')
    is 1 "$file" "SELECT count(*) FROM TARGET_INFO_SYSTEM_ENV WHERE devStateName = 'CUPTI' AND name = 'Library'"
    is 1 "$file" "SELECT count(*) FROM META_DATA_CAPTURE WHERE value = 'Cuda'"
    is 20 "$file" "SELECT count(*) FROM NVTX_EVENTS JOIN StringIds ON id = textId WHERE value = 'fetch'"
fi
ENG_CUPTI_LIBRARY=./no-such-library.so expect 0 'no GPU work in traces' run step "${tiny[@]}" --trace --db=out/h.db
is 1 out/h.db "SELECT count(*) FROM artifacts"

# ---- mistakes and obstacles ----
expect 1 'trace=5.*20 samples at least' run step "${tiny[@]}" -a trace=5 --db=out/d.db
: >out/traces.txt
mkdir blocked && : >blocked/traces
expect 7 'blocked/traces' run step "${tiny[@]}" --trace --db=blocked/e.db
rm blocked/traces
expect 0 '1 points measured' run step "${tiny[@]}" --trace --db=blocked/e.db # goes on, and traces now
is 1 blocked/e.db "SELECT count(*) FROM artifacts"
# Another tool listens: the run is the same, without traces.
NVTX_INJECTION64_PATH=./no-such-tool.so expect 0 'no traces: another tool' run step "${tiny[@]}" --trace --db=out/f.db
is '0 0' out/f.db "SELECT (SELECT count(*) FROM artifacts) || ' ' || (SELECT count(*) FROM samples WHERE traced)"
exit $failures
