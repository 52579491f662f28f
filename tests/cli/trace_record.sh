#!/usr/bin/env bash
# label: fast
# engram trace record on a program that is not ours: every thread and process, names, payloads, a killed program, a
# full buffer, exit codes, and what cannot be recorded. skips: no NVTX headers. Arguments: the program, the source folder.
set -u
engram=$1
annotated=$(dirname "$engram")/tests/annotated
[ -x "$annotated" ] || { echo "skipped: no NVTX headers"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset NVTX_INJECTION64_PATH
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
texts="SELECT coalesce(e.text, s.value) AS name, e.* FROM NVTX_EVENTS e LEFT JOIN StringIds s ON s.id = e.textId"

# ---- two threads ----
expect 0 '202 ranges and 1 marks of 2 threads in 1 processes' trace record -o two.sqlite -- "$annotated"
is 'across:1 inner:100 step:100 wide ü:1' two.sqlite "SELECT group_concat(name || ':' || n, ' ') FROM (SELECT name,
    count(*) AS n FROM ($texts) WHERE eventType IN (59, 60) GROUP BY 1 ORDER BY 1)"
is '{"size":-3,"share":0.25,"tag":"ab\"c"}' two.sqlite "SELECT jsonText FROM ($texts) WHERE name = 'step'
    AND json_extract(jsonText, '\$.size') = -3 LIMIT 1"
is '7 4278255360 0.5 1 1' two.sqlite "SELECT category || ' ' || color || ' ' || doubleValue || ' ' || rangeId || ' ' ||
    (endGlobalTid <> globalTid) FROM ($texts) WHERE name = 'across'"
is 'done' two.sqlite "SELECT name FROM ($texts) WHERE eventType = 34"
is 'annotated second' two.sqlite "SELECT group_concat(value, ' ') FROM (SELECT value FROM ThreadNames JOIN StringIds
    ON id = nameId ORDER BY 1)"
is 0 two.sqlite "SELECT count(*) FROM ($texts) c WHERE name = 'inner' AND NOT EXISTS (SELECT 1 FROM ($texts) p WHERE
    p.name = 'step' AND p.globalTid = c.globalTid AND p.start <= c.start AND c.end <= p.end)"
is "PROCESS_0:COMMAND|$annotated" two.sqlite "SELECT * FROM META_DATA_CAPTURE WHERE name LIKE '%COMMAND'"

# ---- other processes: forked, and started by a shell ----
expect 0 '404 ranges and 2 marks of 4 threads in 2 processes' trace record -o fork.sqlite -- "$annotated" fork
is 2 fork.sqlite "SELECT count(DISTINCT globalTid >> 24) FROM NVTX_EVENTS WHERE eventType = 59"
is 2 fork.sqlite "SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 75"
expect 0 'in 2 processes' trace record -o shell.sqlite -- sh -c "$annotated; $annotated many 5; exit 0"
expect 0 'in 2 processes' trace record -o exec.sqlite -- sh -c "$annotated many 3; exec $annotated"

# ---- exit codes and kills: what was recorded stays ----
expect 3 '202 ranges' trace record -o three.sqlite -- "$annotated" three
expect 1 'made no NVTX call' trace record -o none.sqlite -- false
expect 5 'made no NVTX call' trace record -o none.sqlite -- true
expect 137 '1 of the processes were killed' trace record -o killed.sqlite -- "$annotated" killed
is '38 2' killed.sqlite "SELECT count(end) || ' ' || (count(*) - count(end)) FROM NVTX_EVENTS WHERE eventType = 59"

# A closed terminal reaches the command, and what it recorded is written.
"$engram" trace record -o closed.sqlite -- sh -c "$annotated; : >ready; exec sleep 60" 2>closed.txt &
for i in $(seq 600); do [ -e ready ] && break; sleep 0.1; done
kill -HUP $!
wait $!
[ $? = 129 ] && grep -q '202 ranges' closed.txt || fail "a hangup: $(cat closed.txt)"

# ---- a full buffer drops and counts, and does not stop the program ----
expect 0 'events were dropped' trace record --buffer-mib=1 -o full.sqlite -- "$annotated" many 100000
[ "$(sqlite3 full.sqlite 'SELECT n FROM ENGRAM_DROPS')" -gt 1000 ] || fail "drops are not in the file"
expect 6 'lost' trace summary full.sqlite

# ---- what cannot be recorded: one line, no file ----
expect 5 'made no NVTX call' trace record -o none.sqlite -- true
expect 1 'cannot be started' trace record -o none.sqlite -- ./no-such-program
expect 1 'name a command' trace record -o none.sqlite
mkdir folder
expect 7 'folder: not a regular file' trace record -o folder -- touch it-ran
[ ! -e it-ran ] || fail "the command ran before its output was found unwritable"
expect 1 'names no file' trace record --out= -- "$annotated"
expect 7 'cannot write beside it' trace record -o no/such/none.sqlite -- "$annotated"
NVTX_INJECTION64_PATH=x expect 1 "another tool" trace record -o none.sqlite -- "$annotated"
ENG_NVTX_HOOK=./nowhere.so expect 5 'nowhere.so: the hook library is not there' trace record -o none.sqlite -- "$annotated"
ENG_DB_MAX_PAGES=20 expect 7 'none.sqlite: cannot write' trace record -o none.sqlite -- "$annotated"
[ ! -e none.sqlite ] || fail "a refused recording left a file"
[ -z "$(find . -name '*.tmp*' -o -name '*.rec' -o -name '*.sqlite.??????')" ] || fail "left behind: $(ls)"

# ---- a tool that is injected wins over the hook that is linked in ----
expect 0 'points measured' trace record -o ours.sqlite -- "$engram" run step -a preset=laptop -a corpus=uniform \
    -a rows=2^8 -a tokens=2 -a pairs=2 -a segments=1 --trace --db=ours.db --data=.
is 1 ours.sqlite "SELECT count(*) FROM NVTX_EVENTS JOIN StringIds ON id = textId WHERE eventType = 75 AND value = 'engram'"
is 1 ours.sqlite "SELECT count(*) > 2 FROM ($texts) WHERE name = 'fetch' AND json_extract(jsonText, '\$.tokens') = 2"
is '2 0' ours.db "SELECT (SELECT count(*) FROM samples WHERE traced = 0) || ' ' || (SELECT count(*) FROM artifacts)"
output=$(NVTX_INJECTION64_PATH=./no-such-tool.so "$engram" trace record --overhead 2>&1)
grep -q 'another tool' <<<"$output" || fail "the linked-in hook did not step aside: $output"
expect 0 'hook records' trace record --overhead
exit $failures
