#!/usr/bin/env bash
# label: nightly. skips: no NVTX headers
# What traces may cost: a recorded range under 200 ns, ten million intervals under 10 s of processor time and in memory
# that grows with their number alone. The best of three counts, since others may use the machine.
# Arguments: the program, the source folder.
set -u
engram=$1
intervals=$(dirname "$engram")/tests/test_interval
failures=0
fail() { echo "FAIL: $*"; failures=1; }

overhead() { "$engram" trace record --overhead 2>&1; }
overhead >/dev/null || { echo "skipped: no NVTX headers"; exit 77; }
for _ in 1 2 3; do overhead; done | awk '/hook records/ { if (!n++ || $3 < least) least = $3 }
    END { print "a recorded range: " least " ns"; exit !(n == 3 && least < 200) }' || fail "a range takes 200 ns or more"

# best N: seconds of processor time and bytes per interval of the best try.
best() {
    for _ in 1 2 3; do
        ENG_TEST_INTERVALS=$1 python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / int(sys.argv[2]))' "$intervals" "$1" || return 1
    done | sort -g | head -1
}
for n in 1000000 10000000; do
    read -r seconds bytes < <(best $n) || fail "$n intervals: $intervals failed"
    echo "$n intervals: $seconds s, $bytes bytes each"
    awk "BEGIN { exit !($seconds < 10) }" || fail "$n intervals take $seconds s"
    awk "BEGIN { exit !($bytes < 100) }" || fail "$n intervals take $bytes bytes each"
done
exit $failures
