#!/usr/bin/env bash
# A peer program that fails is told by name and ends the comparison with code 7. Arguments: the program, the source folder.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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
expect '^fio_check: fio --iodepth=16 gave no number' \
    "$source/scripts/fio_check" --rounds=1 --depths=16 --rows=4096 --engram="$engram" --data="$work"
exit $failures
