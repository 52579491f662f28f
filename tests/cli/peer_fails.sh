#!/usr/bin/env bash
# A peer program that fails is told by name and ends the comparison with code 7. Arguments: the program, the source folder.
# skips: no sqlite3 program
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v sqlite3 >/dev/null || { echo "skipped: no sqlite3 program"; exit 77; }
failures=0
for peer in likwid-bench fio; do
    printf '#!/bin/sh\necho "%s: no such kernel" >&2\nexit 1\n' "$peer" >"$work/$peer"
    chmod +x "$work/$peer"
done
expect() { # PATTERN COMMAND...
    local pattern=$1 got=0 output
    shift
    output=$(PATH=$work:$PATH ENG_TABLES=$work/tables "$@" 2>&1) || got=$?
    [ $got = 7 ] && grep -qE "$pattern" <<<"$output" && grep -q 'no such kernel' <<<"$output" && return
    echo "FAIL: $*: exit $got, $output"
    failures=1
}
expect '^roof_check: likwid-bench -t load_.* gave no number' \
    "$source/scripts/roof_check" --rounds=1 --threads=1 --bytes=1048576 --engram="$engram"
# The store is measured first: without io_uring or direct reads (5: no point was) there is nothing to hold against fio.
ENG_TABLES=$work/tables "$engram" run tier -a store=uring -a io=direct -a scales=memory -a residency=as_found -a depth=16 \
    -a rows=4096 -a corpus=uniform -a tokens=16 -a pairs=2 -a segments=1 --data="$work" --db="$work/e.db" >"$work/out" 2>&1
if [ $? = 5 ]; then
    echo "not checked: fio_check ($(grep -m1 '^skipped' "$work/out"))"
    exit $failures
fi
expect '^fio_check: fio --iodepth=16 gave no number' \
    "$source/scripts/fio_check" --rounds=1 --depths=16 --rows=4096 --engram="$engram" --data="$work"
exit $failures
