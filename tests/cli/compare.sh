#!/usr/bin/env bash
# label: slow. engram compare from the outside: two runs, the same measurement, other machines, other databases.
# skips: no sqlite3 program
# Arguments: the program, the source folder.
set -u
engram=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
command -v sqlite3 >/dev/null || { echo "skipped: no sqlite3 program"; exit 77; }
failures=0
fail() { echo "FAIL: $*"; failures=1; }
expect() { # expect CODE PATTERN ARGUMENT...
    local code=$1 pattern=$2 output got=0
    shift 2
    output=$("$engram" "$@" 2>&1) || got=$?
    [ "$got" = "$code" ] || fail "$*: exit $got, expected $code: $output"
    grep -qE -- "$pattern" <<<"$output" || fail "$*: no '$pattern' in: $output"
}
point=(gather -a corpus=synthetic -a rows=1024 -a heads=2 -a tokens=16 -a variant=portable -a segments=2 --data=. --db=a.db)
for pairs in 10 10 11; do
    "$engram" run "${point[@]}" -a pairs=$pairs $([ $pairs = 10 ] && echo --fresh) >/dev/null 2>&1 || fail "run"
done
mapfile -t runs < <(sqlite3 a.db 'SELECT run_id FROM runs ORDER BY started_utc')
[ "${#runs[@]}" = 3 ] || fail "${#runs[@]} runs, not 3"
a=${runs[0]} b=${runs[1]} c=${runs[2]}

# Two measurements of one kernel: whatever this machine says, never slower nor faster by a sixth.
expect 0 '1 points in common' compare "$a" "$b" --db=a.db
# By name; the verdict is stored, of the last comparison alone, and another database says why it is not.
expect 0 '1 points in common' compare latest~2 latest~1 --db=a.db
[ "$(sqlite3 a.db "SELECT group_concat(kind || run_id || base_run_id) FROM verdicts")" = "compare$b$a" ] ||
    fail "stored: $(sqlite3 a.db 'SELECT * FROM verdicts')"
expect 0 ",portable,compare,(same|unclear|slower|faster)," export --verdicts --run=latest~1 --db=a.db
expect 0 "^${b:0:8} +latest~1 .* 1( |$)" runs --db=a.db
chmod a-w . a.db
if [ "$(id -u)" != 0 ]; then
    expect 0 'the verdicts are not stored: a.db: ' compare latest~2 latest~1 --db=a.db
fi
chmod u+w . a.db
# The third run found the second's point.
expect 0 'portable +same measurement' compare "$b" "${c:0:8}" --db=a.db
# Times of B made one and a half times as long in a copy: slower; the other way round: faster.
cp a.db b.db
sqlite3 b.db "UPDATE samples SET cpu_ns = cpu_ns * 3 / 2, wall_ns = wall_ns * 3 / 2 WHERE block_id IN
    (SELECT block_id FROM blocks WHERE run_id = '$b') AND point_key IN (SELECT point_key FROM points WHERE is_roof = 0)"
expect 3 'portable +slower' compare "$a" "$b" --db=a.db --db-b=b.db
expect 0 'portable +faster' compare "$b" "$a" --db=b.db --db-b=a.db
# The roof of B took three times as long, its point one and a half times: the machine, not the code.
cp a.db r.db
sqlite3 r.db "UPDATE samples SET cpu_ns = cpu_ns * 3 / 2, wall_ns = wall_ns * 3 / 2 WHERE block_id IN
    (SELECT block_id FROM blocks WHERE run_id = '$b') AND point_key IN (SELECT point_key FROM points WHERE is_roof = 0);
    UPDATE samples SET cpu_ns = cpu_ns * 3, wall_ns = wall_ns * 3 WHERE block_id IN
    (SELECT block_id FROM blocks WHERE run_id = '$b') AND point_key IN (SELECT point_key FROM points WHERE is_roof = 1)"
expect 0 'portable +unclear .*within the floor of [0-9]+' compare "$a" "$b" --db=a.db --db-b=r.db
# Another machine.
sqlite3 b.db "INSERT INTO machines SELECT 'other', cpu_model, cores, memory_bytes, cache_bytes, gpu, description_json
    FROM machines LIMIT 1; UPDATE runs SET machine_id = 'other'"
expect 1 'across-machines' compare "$a" "$b" --db=a.db --db-b=b.db
expect 3 'portable +slower' compare "$a" "$b" --db=a.db --db-b=b.db --across-machines
expect 1 'name two runs' compare "$a" --db=a.db
expect 5 'no run .zzz' compare zzz "$a" --db=a.db
[ "$failures" = 0 ] && echo "compare holds"
exit "$failures"
