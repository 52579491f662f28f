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
expect() { # expect CODE PATTERN ARGUMENT...; CODE may be a pattern of the shell
    local code=$1 pattern=$2 output got=0
    shift 2
    output=$("$engram" "$@" 2>&1) || got=$?
    # shellcheck disable=SC2053
    [[ $got == $code ]] || fail "$*: exit $got, expected $code: $output"
    grep -qE -- "$pattern" <<<"$output" || fail "$*: no '$pattern' in: $output"
}
point=(gather -a corpus=synthetic -a rows=1024 -a heads=2 -a tokens=16 -a variant=portable -a segments=2 --data=.)
for pairs in 10 10 11; do
    "$engram" run "${point[@]}" -a pairs=$pairs --db=a.db $([ $pairs = 10 ] && echo --fresh) >/dev/null 2>&1 || fail "run"
done
mapfile -t runs < <(sqlite3 a.db 'SELECT run_id FROM runs ORDER BY started_utc')
[ "${#runs[@]}" = 3 ] || fail "${#runs[@]} runs, not 3"
a=${runs[0]} b=${runs[1]} c=${runs[2]}

# Two measurements of one kernel: about one such pair in 200 is called slower (docs/method.md).
expect '[03]' '1 points in common' compare "$a" "$b" --db=a.db
# By name; the verdict is stored, of the last comparison alone, and another database says why it is not.
expect '[03]' '1 points in common' compare latest~2 latest~1 --db=a.db
[ "$(sqlite3 a.db "SELECT group_concat(kind || run_id || base_run_id) FROM verdicts")" = "compare$b$a" ] ||
    fail "stored: $(sqlite3 a.db 'SELECT * FROM verdicts')"
expect 0 ",portable,compare,(same|unclear|slower|faster)," export --verdicts --run=latest~1 --db=a.db
expect 0 "^${b:0:8} +latest~1 .* 1( |$)" runs --db=a.db
# A database that cannot be written (root writes everywhere: be nobody).
cp "$engram" program && chmod 555 . program && chmod 444 a.db
as_other=()
[ "$(id -u)" != 0 ] || as_other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
other() { "${as_other[@]}" ./program "$@"; }
if other --version >/dev/null 2>&1; then
    engram=other expect '[03]' 'the verdicts are not stored: a.db: ' compare latest~2 latest~1 --db=a.db
else
    echo "not checked: verdicts of read-only databases"
fi
chmod u+w . a.db
# The third run found the second's point.
expect 0 ' same measurement' compare "$b" "${c:0:8}" --db=a.db
# Times of B made four times as long in a copy: slower; the other way round: faster.
cp a.db b.db
sqlite3 b.db "UPDATE samples SET cpu_ns = cpu_ns * 4, wall_ns = wall_ns * 4 WHERE block_id IN
    (SELECT block_id FROM blocks WHERE run_id = '$b') AND point_key IN (SELECT point_key FROM points WHERE is_roof = 0)"
expect 3 ' slower ' compare "$a" "$b" --db=a.db --db-b=b.db
expect 0 ' faster ' compare "$b" "$a" --db=b.db --db-b=a.db
# The roof of B took three times as long, its point one and a half times: the machine, not the code.
cp a.db r.db
sqlite3 r.db "UPDATE samples SET cpu_ns = cpu_ns * 3 / 2, wall_ns = wall_ns * 3 / 2 WHERE block_id IN
    (SELECT block_id FROM blocks WHERE run_id = '$b') AND point_key IN (SELECT point_key FROM points WHERE is_roof = 0);
    UPDATE samples SET cpu_ns = cpu_ns * 3, wall_ns = wall_ns * 3 WHERE block_id IN
    (SELECT block_id FROM blocks WHERE run_id = '$b') AND point_key IN (SELECT point_key FROM points WHERE is_roof = 1)"
expect 0 ' unclear .*within the floor of [0-9]+' compare "$a" "$b" --db=a.db --db-b=r.db
# What B lost is no pass: wrong, failed, skipped, without a roof; a difference comes first.
for _ in 1 2; do
    "$engram" run "${point[@]/tokens=16/tokens=1,2}" -a pairs=10 --db=m.db --fresh >/dev/null 2>&1 || fail "run of two"
done
of_b() { # TOKENS: condition for its point in B
    echo "block_id IN (SELECT block_id FROM run_points JOIN runs USING (run_id) WHERE run_id = (SELECT run_id FROM runs
        ORDER BY started_utc DESC LIMIT 1)) AND point_key IN (SELECT point_key FROM points WHERE is_roof = 0 AND
        axes_json ->> '$.tokens' = $1)"
}
times() { echo "UPDATE samples SET cpu_ns = cpu_ns * $1, wall_ns = wall_ns * $1 WHERE $(of_b 2)"; }
ends() { echo "UPDATE block_points SET outcome = '$1', reason = 'by hand' WHERE $(of_b 1)"; }
sqlite3 m.db "$(times '1 / 5')"
expect '[03]' '2 points in common' compare latest~1 latest --db=m.db
for outcome in wrong failed; do
    cp m.db lost.db && sqlite3 lost.db "$(ends $outcome)"
    expect 2 " B $outcome .*by hand" compare latest~1 latest --db=lost.db
    expect 2 '1 faster, .* 1 failed or wrong in B alone' compare latest~1 latest --db=lost.db --strict
    expect 3 " A $outcome .*by hand" compare latest latest~1 --db=lost.db
    expect 3 '1 slower, .* 0 failed or wrong in B alone' compare latest latest~1 --db=lost.db
    sqlite3 lost.db "$(times 20)"
    expect 3 '1 slower, .* 1 failed or wrong in B alone' compare latest~1 latest --db=lost.db
done
cp m.db skipped.db && sqlite3 skipped.db "$(ends skipped)"
expect 0 ' B skipped .*by hand' compare latest~1 latest --db=skipped.db
expect 4 '1 faster' compare latest~1 latest --db=skipped.db --strict
cp m.db roofless.db && sqlite3 roofless.db "DELETE FROM roofs WHERE block_id IN (SELECT block_id FROM block_points WHERE $(of_b 1))"
expect 0 ' not judged .*no roof measured beside it' compare latest~1 latest --db=roofless.db
expect 4 '1 faster' compare latest~1 latest --db=roofless.db --strict
# Nothing judged at all is no pass either; the medians are told.
for _ in 1 2; do
    "$engram" run chain -a preset=tiny -a corpus=synthetic -a tokens=2 -a segments=1 -a pairs=4 --fresh --data=. --db=c.db >/dev/null 2>&1 ||
        fail "run of the chain"
done
for strict in '' --strict; do
    expect 5 ' not judged +[0-9.]+ +[0-9.]+ +no roof measured beside it' compare latest~1 latest --db=c.db $strict
done
# What it is worth for the chain: the same database has one of that preset and tokens, or none.
for _ in 1 2; do
    "$engram" run gather -a preset=tiny -a corpus=synthetic -a tokens=2 -a variant=portable -a pairs=6 --fresh --data=. --db=c.db \
        >/dev/null 2>&1 || fail "run of tiny"
done
expect '[03]' '^chain: B over A of portable, x[0-9.]+ on gather = .* of the chain at 2 tokens' compare latest~1 latest --db=c.db
expect '[03]' '^chain: no measured chain of v41-flash at 16 tokens here' compare "$a" "$b" --db=a.db
# Segments of B, 4 and 4000 times as long: what changed by less than they lie apart is within them.
cp b.db s.db
sqlite3 s.db "UPDATE samples SET cpu_ns = cpu_ns * 1000, wall_ns = wall_ns * 1000 WHERE segment = 1 AND block_id IN
    (SELECT block_id FROM blocks WHERE run_id = '$b') AND point_key IN (SELECT point_key FROM points WHERE is_roof = 0)"
expect 0 ' unclear .*within the floor of [0-9]{4,}' compare "$a" "$b" --db=a.db --db-b=s.db
# Another machine.
sqlite3 b.db "INSERT INTO machines SELECT 'other', cpu_model, cores, memory_bytes, cache_bytes, gpu, description_json
    FROM machines LIMIT 1; UPDATE runs SET machine_id = 'other'"
expect 1 'across-machines' compare "$a" "$b" --db=a.db --db-b=b.db
expect 3 ' slower ' compare "$a" "$b" --db=a.db --db-b=b.db --across-machines
expect 1 'name two runs' compare "$a" --db=a.db
expect 5 'no run .zzz' compare zzz "$a" --db=a.db
[ "$failures" = 0 ] && echo "compare holds"
exit "$failures"
