#!/usr/bin/env bash
# Outputs for other programs and terminals: export, merge, several sweeps at once, status during a run.
# Arguments: the program.
set -u
engram=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
fail() { echo "FAIL: $*"; failures=1; }
# expect CODE PATTERN ARGUMENT...: exit code, and a line of output or error that matches.
expect() {
    local code=$1 pattern=$2 output got=0
    shift 2
    output=$("$engram" "$@" 2>&1) || got=$?
    [ "$got" = "$code" ] || fail "$*: exit $got, expected $code: $output"
    grep -qE -- "$pattern" <<<"$output" || fail "$*: no '$pattern' in: $output"
}
# A decimal comma, from a locale of our own: few machines have one.
if localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8"; then
    export LOCPATH=$work
else
    echo "not checked: other locales"
fi
sweep() { # NAME TOKENS...
    printf '[sweep]\nname = %s\npairs = 6\nsegments = 2\n[hash]\npreset = tiny\ncorpus = uniform\ntokens = %s\n' \
        "$1" "$2"
    printf '[collide]\npreset = tiny\ncorpus = uniform\ntokens = 256\norder = 2, 3\n'
}
sweep one "1, 16" >one.sweep
sweep two "16, 64" >two.sweep
count() { sqlite3 "$1" "$2"; }

# ---- several sweeps: one run each, shared points measured once ----
expect 6 'absent.sweep' run one.sweep absent.sweep --db=none.db --data=.
[ ! -e none.db ] || fail "a missing second sweep was noticed late"
expect 0 'run [0-9a-f]{8} in a.db' run one.sweep two.sweep --db=a.db --data=.
[ "$(count a.db 'SELECT count(*) FROM runs')" = 2 ] || fail "not two runs"
[ "$(count a.db "SELECT count(*) FROM (SELECT point_key FROM block_points JOIN points USING (point_key)
    WHERE is_roof = 0 GROUP BY 1 HAVING count(*) > 1)")" = 0 ] || fail "a shared point was measured twice"
[ "$(count a.db "SELECT count(*) FROM run_points l JOIN blocks b USING (block_id) WHERE l.run_id <> b.run_id")" -gt 0 ] ||
    fail "the second run found nothing of the first"

# ---- export ----
expect 6 'no such database' export --db=none.db
expect 5 "no run 'zz'" export --db=a.db --run=zz
expect 1 'csv or json' export --db=a.db --format=xml
expect 5 'no points of gather' export --db=a.db --experiment=gather
for format in csv json; do
    "$engram" export --db=a.db --run=all --format=$format >1.$format || fail "export $format"
    "$engram" export --db=a.db --run=all --format=$format --out=2.$format 2>/dev/null || fail "export $format --out"
    cmp -s 1.$format 2.$format || fail "$format: file and standard output differ"
    LC_ALL=de_DE.UTF-8 "$engram" export --db=a.db --run=all --format=$format | cmp -s - 1.$format ||
        fail "$format depends on the locale or is not reproducible"
done
head -1 1.csv | grep -q '^run_id,machine_id,experiment,kind,backend,corpus,' || fail "csv: $(head -1 1.csv)"
[ "$(($(wc -l <1.csv) - 1))" = "$(count a.db 'SELECT count(*) FROM run_points')" ] || fail "not one row per point"
# SQLite reads both back, and medians are those of the view.
sqlite3 :memory: ".import --csv 1.csv c" "ATTACH 'a.db' AS a" "CREATE TABLE j AS SELECT value FROM
    json_each(CAST(readfile('1.json') AS TEXT))" "SELECT
    (SELECT count(*) FROM c) = (SELECT count(*) FROM j),
    (SELECT count(*) FROM c JOIN a.v_summary v ON v.run_id = c.run_id AND v.point_key = c.point_key
        AND v.metric = 'mtok_per_s' WHERE abs(c.mtok_per_s - v.median) > 0) = 0,
    (SELECT count(*) FROM c WHERE mtok_per_s > 0) > 3,
    (SELECT count(*) FROM j JOIN c ON j.value ->> 'run_id' = c.run_id AND j.value ->> 'point_key' = c.point_key
        WHERE coalesce(j.value ->> 'mtok_per_s', '') <> CAST(c.mtok_per_s AS REAL) AND c.mtok_per_s <> '') = 0" \
    >read.txt 2>read.err || fail "sqlite: $(cat read.err)"
[ "$(cat read.txt)" = "1|1|1|1" ] || fail "read back: $(cat read.txt)"
"$engram" export --db=a.db --run=all --samples >samples.csv || fail "export --samples"
[ "$(($(wc -l <samples.csv) - 1))" = "$(count a.db 'SELECT count(*) FROM run_points JOIN samples USING (block_id, point_key)')" ] ||
    fail "not one row per sample"
# A full disk leaves the old file, and no temporary one.
cp 1.csv kept.csv
ENG_FAIL_WRITE=500 "$engram" export --db=a.db --run=all --out=kept.csv 2>full.err && fail "a full disk went unnoticed"
grep -q 'No space left' full.err || fail "full disk: $(cat full.err)"
cmp -s kept.csv 1.csv || fail "a full disk spoilt the old export"
[ -z "$(find . -name '*.tmp*')" ] || fail "a temporary file is left"
[ -c /dev/full ] && "$engram" export --db=a.db >/dev/full 2>/dev/null && fail "/dev/full went unnoticed"

# ---- merge ----
dump() { sqlite3 "$1" .dump | sort; }
before=$(sha256sum <a.db)
expect 6 'no such database' merge none.db --db=b.db
[ ! -e b.db ] || fail "merging nothing made a database"
expect 1 'one database' merge a.db --db=./a.db
expect 1 'name the database' merge --db=b.db
expect 0 '2 runs' merge a.db --db=b.db
[ "$before" = "$(sha256sum <a.db)" ] || fail "merge changed the other database"
cmp -s <(dump a.db) <(dump b.db) || fail "merged into nothing, the databases differ"
expect 0 ' 0 rows added .* 0 in conflict' merge a.db --db=b.db
cmp -s <(dump a.db) <(dump b.db) || fail "a second merge changed something"
"$engram" export --db=b.db --run=all | cmp -s - 1.csv || fail "exports differ after a merge"
expect 0 'found' run one.sweep --db=b.db --data=.
expect 0 ' 0 rows added .* 0 in conflict' merge a.db --db=b.db
sqlite3 b.db "UPDATE points SET provenance = 'by hand' WHERE point_key = (SELECT min(point_key) FROM points)"
expect 6 'conflict, ours kept: points [0-9a-f]{32}: provenance differs' merge a.db --db=b.db
# Foreign, newer, no database; and a full disk leaves nothing half-merged.
sqlite3 foreign.db 'CREATE TABLE t (x)'
expect 7 'another program' merge foreign.db --db=b.db
cp a.db newer.db && sqlite3 newer.db 'PRAGMA user_version = 999'
expect 7 'newer' merge newer.db --db=b.db
expect 7 'newer' merge a.db --db=newer.db
echo text >text.db
expect 6 'not a database' merge text.db --db=b.db
"$engram" run collide -a preset=tiny -a corpus=uniform -a order=2 --db=small.db --data=. >/dev/null 2>&1
dump small.db >small.before
ENG_DB_MAX_PAGES=$(($(count small.db 'PRAGMA page_count') + 4)) "$engram" merge a.db --db=small.db >/dev/null 2>full.err
[ $? = 7 ] || fail "merge on a full disk: $?"
grep -q 'disk full' full.err || fail "merge on a full disk: $(cat full.err)"
dump small.db | cmp -s - small.before || fail "half-merged"

# ---- allocations that fail: exit 7 and one line, and the next try works ----
for n in 1 2 3 5 8 13 21 34 55 89 144; do
    for what in "export --db=a.db --run=all --out=short.csv" "merge a.db --db=small.db"; do
        # shellcheck disable=SC2086
        ENG_FAIL_ALLOC=$n "$engram" $what >out.txt 2>short.err
        got=$?
        [ $got = 0 ] || { [ $got = 7 ] && [ "$(grep -c 'out of memory' short.err)" = 1 ]; } ||
            fail "allocation $n of $what: exit $got, $(cat short.err)"
        [ $n -gt 5 ] || [ $got = 7 ] || fail "allocation $n of $what was not reached"
        [ $got = 0 ] || [ ! -e short.csv ] || [[ $what = merge* ]] || fail "allocation $n: half an export"
        rm -f short.csv
    done
    [ "$(sqlite3 small.db 'PRAGMA integrity_check')" = ok ] || fail "allocation $n of merge: integrity"
done
expect 0 'in conflict' merge a.db --db=small.db

# ---- status from another process, and a second writer, while a run goes on ----
"$engram" run hash -a preset=tiny -a corpus=uniform -a tokens=1,4,16,64 -a pairs=40 --db=live.db --data=. >/dev/null 2>&1 &
run=$!
seen=0
while kill -0 $run 2>/dev/null; do
    if "$engram" status --db=live.db >status.txt 2>&1; then
        grep -qE '^in work: block [0-9]+, hash, segment' status.txt && grep -q 's left' status.txt && seen=1
        [ $seen = 1 ] && break
    fi
    sleep 0.05
done
[ $seen = 1 ] || fail "status saw no running block: $(cat status.txt)"
expect 7 'another run is active' merge a.db --db=live.db
# A run that was killed before is not the one that runs now.
sqlite3 -cmd '.timeout 5000' live.db "CREATE TEMP TABLE dead AS SELECT * FROM runs LIMIT 1;
UPDATE dead SET run_id = 'dead-run', started_utc = '2020-01-01T00:00:00Z'; INSERT INTO runs SELECT * FROM dead"
expect 0 'dead-run +latest~1 .* killed ' runs --db=live.db
expect 0 'latest .* running ' runs --db=live.db
expect 0 'dead-run .* killed \(the same command goes on\)' status dead-run --db=live.db
expect 0 '^run_id,' export --db=live.db
while kill -0 $run 2>/dev/null && ! grep -q 'times their estimates' status.txt; do
    sleep 0.1
    "$engram" status --db=live.db >status.txt 2>&1
done
grep -q 'times their estimates' status.txt || fail "status never told measured costs: $(cat status.txt)"
kill $run 2>/dev/null
wait $run 2>/dev/null
expect 0 'slowest' status --db=live.db
# A device, a pipe or a link is not written over.
mkfifo pipe
ln -s a.db link
expect 7 'not a regular file' export --db=a.db --out=pipe
expect 7 'not a regular file' export --db=a.db --out=link
[ -p pipe ] && [ -L link ] || fail "export replaced a pipe or a link"

# ---- for people: helps and tables fit 100 columns ----
narrow() { # WHAT, its text on stdin
    local wide
    wide=$(awk 'length > 100')
    [ -z "$wide" ] || fail "$1 is wider than 100 columns: $wide"
}
verbs=$("$engram" --help | awk '/^  [a-z]+ /{print $1}')
[ "$(wc -w <<<"$verbs")" -gt 10 ] || fail "verbs: $verbs"
narrow --help < <("$engram" --help)
for verb in $verbs; do narrow "$verb --help" < <("$engram" "$verb" --help | sed "s|(default /[^)]*)||"); done
"$engram" run gather -a corpus=uniform -a rows=101,211 -a tokens=2 -a pairs=2 -a segments=1 \
    --db=wide.db --data=. 2>/dev/null >wide.txt || fail "run: $(cat wide.txt)"
narrow 'the result of a run' <wide.txt
grep -q '^all rows: experiment gather' wide.txt || fail "not folded: $(cat wide.txt)"
# One point whose axes are long, and several.
for tokens in 2 2,3; do
    rm -f wide.db
    for _ in 1 2; do
        "$engram" run hash -a preset=tiny -a corpus=uniform -a tokens=$tokens -a variant=portable,naive -a pairs=4 -a segments=2 \
            --fresh --db=wide.db --data=. 2>/dev/null >wide.txt || fail "run: $(cat wide.txt)"
        narrow 'the result of a run' <wide.txt
    done
    "$engram" compare latest~1 latest --db=wide.db >wide.txt
    narrow 'a comparison' <wide.txt
    grep -qE '^ *portable +[a-z]* *[0-9.]+ ' wide.txt || fail "no row of portable: $(cat wide.txt)"
done
exit $failures
