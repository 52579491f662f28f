#!/bin/bash
# scripts/gpu_check: options, and what it says where its program is not.
set -u
source=$2
check=$source/scripts/gpu_check
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; exit 1; }
expect() { # CODE WORDS COMMAND...
    local want=$1 words=$2 got
    shift 2
    "$@" >"$work/out" 2>&1
    got=$?
    [ $got = "$want" ] || fail "exit $got, not $want: $* ($(cat "$work/out"))"
    grep -q -- "$words" "$work/out" || fail "no '$words' in: $(cat "$work/out")"
}
expect 0 'gpu_check --pack' bash "$check" --help
expect 1 "unknown option '--runs'" bash "$check" --runs
expect 1 '--pack or --run' bash "$check"
expect 1 '--out wants a folder' bash "$check" --run --out
expect 1 'wants --out' bash "$check" --run
expect 1 'whole number' bash "$check" --run --out "$work/o" --seconds=soon
expect 7 'no program beside' bash "$check" --run --out "$work/o"
echo ok
