#!/usr/bin/env bash
# Faults of a table file and its device as the experiments meet them: reads that fail, a file cut short while it is
# read, damage, a full disk, too few descriptors, io_uring forbidden, too little memory. Each is named with the file,
# ends with the documented code, and no point with other rows than the seed's counts as measured.
# skips: no sqlite3 program. Arguments: the program, the source folder.
set -u
engram=$1
source=$2
command -v sqlite3 >/dev/null || { echo "skipped: no sqlite3 program"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export ENG_DATA=$work/data ENG_TABLES=$work/tables
failures=0
fail() { echo "FAIL: $*"; failures=1; }
outcomes() { # outcome -> how many points have it
    sqlite3 a.db "SELECT count(*) FROM block_points WHERE outcome = '$1'"
}
# expect CODE OUTCOME=COUNT TEXT ARGUMENT...: exit code, points with an outcome, and one line for each of them, or one
# line at all where nothing was measured, that has TEXT.
expect() {
    local code=$1 outcome=${2%=*} count=${2#*=} text=$3 got=0 lines
    shift 3
    rm -f a.db*
    timeout 60 "$engram" run "$@" --db=a.db >out 2>err </dev/null || got=$?
    [ "$got" = "$code" ] || fail "$*: exit $got, expected $code: $(cat err)"
    [ "$outcome" = none ] || [ "$(outcomes "$outcome")" = "$count" ] ||
        fail "$*: $(outcomes "$outcome") points $outcome, expected $count: $(cat err)"
    lines=$(cat err out | grep -cF -- "$text")
    [ -z "$text" ] || [ "$lines" -ge "$count" ] || fail "$*: $lines lines with '$text', expected $count: $(cat err out)"
}

table_of=(-a preset=tiny -a corpus=uniform -a row_dims=64 -a segments=1)
small=("${table_of[@]}" -a rows=1009 -a pairs=2)
long=("${table_of[@]}" -a rows=1009 -a pairs=9000 -a budget_ms=50000) # a run of most of a minute
tier=(tier "${small[@]}" -a tokens=9)
steps=("${small[@]}" -a window=paced:10 -a layers=2 -a hidden=64)
stores=memory,mmap,pread,nowait,uring
expect 0 measured=5 "" "${tier[@]}" -a store=$stores
table=$(echo $ENG_TABLES/*.table)
[ -f "$table" ] || { echo "FAIL: no table file"; exit 1; }
cp "$table" whole

# ---- the device fails: the first read, one in the middle, one while samples are taken ----
for n in 1 30; do
    export ENG_FAIL_READ=$n
    expect 2 failed=4 "$table: row " "${tier[@]}" -a store=mmap,pread,nowait,uring
    grep -q 'Input/output error' err || fail "read $n: no reason: $(cat err)"
    expect 2 failed=4 "Input/output error" "${tier[@]}" -a store=pread -a policy=lru,sieve,direct,ways -a cache_rows=20
    expect 2 failed=2 "Input/output error" "${tier[@]}" -a store=pread,uring -a shards=3 -a dedup=on
    expect 2 failed=2 "$table: row " prefetch "${steps[@]}" -a tokens=9 -a store=pread,uring
    expect 2 failed=2 "$table: row " speculate "${steps[@]}" -a store=pread,uring
    expect 2 failed=2 "$table: row " interference "${small[@]}" -a tokens=9 -a victim_width=64 -a source=store \
        -a gatherers=1 -a store=pread,uring
done
export ENG_FAIL_READ=1
expect 2 failed=1 "$table: row 0: cannot read" "${tier[@]}" -a store=memory
export ENG_FAIL_READ=1500
expect 2 failed=4 "$table: row " tier "${table_of[@]}" -a rows=1009 -a tokens=9 \
    -a store=mmap,pread,nowait,uring -a pairs=40
unset ENG_FAIL_READ
cmp -s whole "$table" || fail "a failing device changed the table"
expect 0 measured=5 "" "${tier[@]}" -a store=$stores

# ---- the file is cut short while it is read ----
cut_short() { # ARGUMENT...: of a long run
    local got=0
    cp whole "$table"
    rm -f a.db*
    timeout 60 "$engram" run "$@" --db=a.db >out 2>err &
    local run=$!
    for _ in $(seq 300); do
        [ "$(sqlite3 a.db 'SELECT count(*) > 5 FROM samples' 2>/dev/null)" = 1 ] && break
        sleep 0.02
    done
    truncate -s 5000 "$table"
    wait $run || got=$?
    [ $got = 2 ] && [ "$(outcomes failed)" = 1 ] && [ "$(outcomes measured)" = 0 ] || fail "cut short: $*: exit $got: $(cat err)"
    grep -q "failed: $table: .* while open" err || fail "cut short: $*: $(cat err)"
}
for store in mmap pread nowait uring; do cut_short tier "${long[@]}" -a tokens=9 -a store=$store; done
cut_short prefetch "${long[@]}" -a window=paced:10 -a layers=2 -a hidden=64 -a tokens=9 -a store=uring
expect 2 failed=5 "$table: truncated: 5000 bytes" "${tier[@]}" -a store=$stores
cp whole "$table"

# ---- damage: by its checksum wherever in the file it lies; by the row compared with the seed where that is left out ----
head -c 258000 /dev/zero | dd of="$table" bs=4096 seek=1 conv=notrunc status=none
expect 2 failed=5 "$table: checksum mismatch in block 0" "${tier[@]}" -a store=$stores
expect 2 failed=1 "$table: checksum mismatch in block 0" prefetch "${steps[@]}" -a tokens=9 -a store=uring
expect 2 wrong=4 "rows differ" "${tier[@]}" -a store=mmap,pread,nowait,uring -a residency=as_found
[ "$(grep -c 'not compared with its checksums' err)" = 1 ] || fail "as found: not one warning: $(cat err)"
export ENG_VERIFY_BYTES=1000
expect 2 wrong=4 "rows differ" "${tier[@]}" -a store=mmap,pread,nowait,uring
grep -q "$table: not compared .* more than ENG_VERIFY_BYTES" err || fail "too large to verify: $(cat err)"
expect 2 wrong=1 "rows and" prefetch "${steps[@]}" -a tokens=9 -a store=uring
export ENG_VERIFY_BYTES=much
expect 2 failed=1 "ENG_VERIFY_BYTES=much: no number" "${tier[@]}" -a store=pread
unset ENG_VERIFY_BYTES
cp whole "$table"
printf x | dd of="$table" bs=1 seek=$(($(stat -c %s whole) - 9000)) conv=notrunc status=none # a row that no point asks for
expect 2 failed=5 "$table: checksum mismatch in block" "${tier[@]}" -a store=$stores
echo 'a few words' >"$table"
expect 2 failed=5 "$table: 12 bytes: not a table file" "${tier[@]}" -a store=$stores

# ---- another table under this name: larger rows, fewer, other values ----
rm "$table"
for other in "--rows=4062 --format=f32" "--rows=4062 --format=int4" "--rows=100" "--rows=4062 --seed=7"; do
    "$engram" store create "$table" --row-dims=64 $other >/dev/null 2>&1 || fail "cannot create: $other"
    expect 2 failed=5 "$table: another table than its name says" "${tier[@]}" -a store=$stores
    expect 2 failed=1 "$table: another table than its name says" prefetch "${steps[@]}" -a tokens=9 -a store=uring
    rm "$table"
done
cp whole "$table"

# ---- the disk is full: nothing has the name, and the same command goes on ----
rm "$table"
ENG_FAIL_WRITE=5000 expect 2 failed=1 "$table: cannot write" "${tier[@]}" -a store=pread
[ ! -e "$table" ] || fail "a full disk left a table"
expect 0 measured=1 "" "${tier[@]}" -a store=pread
cmp -s whole "$table" || fail "another table after a full disk"

# ---- descriptors: ever more of them, until it works; before, one line that says what is missing ----
for n in $(seq 6 40); do
    rm -f a.db*
    got=0
    (ulimit -n "$n" && timeout 60 "$engram" run "${tier[@]}" -a store=uring -a shards=4 --db=a.db) >out 2>err || got=$?
    [ $got != 0 ] || break
    if [ $got = 7 ]; then
        [ "$(grep -c '^error' err)" = 1 ] && grep -qE 'Too many open files|unable to open|cannot' err || fail "$n descriptors: $(cat err)"
    else
        [ $got = 2 ] && grep -q "failed: .*Too many open files" err || fail "$n descriptors: exit $got: $(cat err)"
    fi
done
[ "$got" = 0 ] && [ "$n" -gt 12 ] || fail "descriptors: exit $got with $n"

# ---- io_uring forbidden: skipped by its name, and what was used instead is told ----
cc=$(command -v cc || command -v gcc || command -v clang)
if [ -n "$cc" ] && "$cc" -o without_uring "$source/tests/cli/without_uring.c" 2>cc.err; then
    rm -f a.db*
    ./without_uring "$engram" run "${tier[@]}" -a store=uring,pread --db=a.db >out 2>err
    got=$?
    [ "$(outcomes skipped)" = 1 ] && [ "$(outcomes measured)" = 1 ] || fail "io_uring forbidden: exit $got: $(cat err)"
    "$engram" export --db=a.db | grep -q 'io_uring is forbidden here (Operation not permitted): pread with' ||
        fail "io_uring forbidden: no reason: $(cat err)"
else
    echo "not checked: io_uring forbidden ($(cat cc.err 2>/dev/null))"
fi

# ---- memory ----
rm -f a.db*
ENG_MEMORY_BYTES=100000 expect 7 none=1 "bytes of memory" "${tier[@]}" -a store=memory
if ! (ulimit -v 2000000 && "$engram" list) >/dev/null 2>&1; then
    echo "not checked: a limit on address space (the address sanitizer wants more)"
    set --
else
    set -- 30 60 90 120
fi
for mib; do # of address space: whatever is short, one line says so, and no point is wrong
    rm -f a.db*
    got=0
    (ulimit -v $((mib * 1024)) && timeout 60 "$engram" run tier "${table_of[@]}" -a rows=200003 -a tokens=9 -a pairs=2 -a store=memory --db=a.db) >out 2>err || got=$?
    case $got in
    0) ;;
    2) grep -qE 'failed: .*(out of memory|bytes|Cannot allocate)' err || fail "$mib MiB: $(cat err)" ;;
    7) grep -qE '^error .*(out of memory|Cannot allocate|cannot)' err || fail "$mib MiB: $(cat err)" ;;
    127) ;; # the loader itself had no room
    *) fail "$mib MiB: exit $got: $(cat err)" ;;
    esac
done
# Allocations that fail, every STRIDE-th, until three in a row come too late to matter.
failing() { # STRIDE ARGUMENT...
    local stride=$1 n=1 fine=0 got
    shift
    while [ $fine -lt 3 ] && [ $n -lt 3000 ]; do
        rm -f a.db*
        got=0
        ENG_FAIL_ALLOC=$n timeout 60 "$engram" run "$@" --db=a.db >out 2>err || got=$?
        [ $got = 0 ] && fine=$((fine + 1)) || fine=0
        case $got in
        0) ;;
        2) grep -q 'failed: .*out of memory' err || fail "allocation $n of $*: $(cat err)" ;;
        7) grep -q '^error engram: .*out of memory' err || fail "allocation $n of $*: $(cat err)" ;;
        *) fail "allocation $n of $*: exit $got: $(cat err)" ;;
        esac
        n=$((n + stride))
    done
    [ $n -gt $((4 * stride)) ] || fail "no allocation of $* was reached"
}
failing 5 "${tier[@]}" -a store=uring,pread -a policy=lru -a dedup=on -a shards=2
failing 11 prefetch "${steps[@]}" -a tokens=9 -a store=uring
failing 11 speculate "${steps[@]}" -a store=pread
failing 11 interference "${small[@]}" -a tokens=9 -a victim_width=64 -a source=store -a gatherers=1 -a store=pread
[ "$failures" = 0 ] && echo "faults of table files hold"
exit "$failures"
