#!/usr/bin/env bash
# label: slow. engram ab and run --plugin from the outside: a kernel that does 5 % more work is called slower
# (exit 3), a rebuild of the same code is not (exit 0), and bad objects are refused in one line. Arguments: the
# program, the source folder.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAIL: $*"; failures=1; }

cd "$work" || exit 1
build() { # build NAME FLAG...: the example plugin
    local name=$1
    shift
    gcc -O3 -shared -fPIC -I"$source/include" "$@" -o "$name" "$source/docs/examples/gather_plugin.c" || exit 1
}
build old.so
build same.so -g -falign-functions=128 # the same instructions elsewhere: another digest
build slow.so -DREPEAT=20
for bad in 'abi 999, 0, 0, 0' 'layout ENG_PLUGIN_ABI, 8, 8, 8'; do
    printf '#include <engram/plugin.h>\nconst EngPlugin *eng_plugin(void)\n{\n%s %s%s\n}\n' \
        '    static const EngPlugin p = {' "${bad#* }" ', "bad", 0}; return &p;' >bad.c
    gcc -shared -fPIC -I"$source/include" -o "bad_${bad%% *}.so" bad.c || exit 1
done
echo 'int eng_nothing;' >none.c && gcc -shared -fPIC -o none.so none.c
echo 'text' >text.so

# expect CODE PATTERN ARGUMENT...: exit code, and output that matches.
expect() {
    local code=$1 pattern=$2 output got=0
    shift 2
    output=$("$engram" "$@" --db="$work/e.db" --data="$work" 2>&1) || got=$?
    [ "$got" = "$code" ] || fail "$*: exit $got, expected $code: $output"
    grep -qE -- "$pattern" <<<"$output" || fail "$*: no '$pattern' in: $output"
}

point=(-a corpus=synthetic -a rows=1024 -a heads=2 -a tokens=64)

# ---- a plugin's kernel: measured and checked beside the built-in ones ----
expect 0 'mine .*measured' run gather --plugin=./old.so "${point[@]}" -a variant=mine,portable -a pairs=2 -a segments=1
sqlite=$(command -v sqlite3) && {
    n=$("$sqlite" "$work/e.db" "SELECT count(*) FROM points p JOIN residuals r USING (point_key)
        WHERE p.variant = 'mine' AND r.pass = 1")
    [ "$n" = 1 ] || fail "the plugin's kernel has $n passed residuals, not 1"
}

# ---- verdicts ----
expect 3 'mine .*slower' ab old.so slow.so gather "${point[@]}" --segments=30
expect 0 ' 0 slower' ab old.so same.so gather "${point[@]}"

# ---- worth for the chain ----
tiny=(-a preset=tiny -a corpus=synthetic -a tokens=16)
expect 0 '^chain: no measured chain of tiny at 16 tokens here' ab old.so same.so gather "${tiny[@]}" --segments=6 --pairs=2
expect 0 '^chain ' run chain "${tiny[@]}" -a pairs=4 -a segments=1
expect 0 '^chain: new over old of mine, x[0-9.]+ on gather = .* of the chain at 16 tokens' \
    ab old.so same.so gather "${tiny[@]}" --segments=6 --pairs=2 --fresh

# ---- build folders, by a cmake that copies $object: a missing object is built, with --build any (ab_folders.sh has the
# real one) ----
mkdir bin empty made && touch made/CMakeCache.txt
printf '#!/bin/sh\n[ "$1 $3 $4" = "--build --target engram_kernels" ] && cp "$object" "$2/libengram_kernels.so"\n' >bin/cmake
chmod +x bin/cmake
by_cmake() { # by_cmake OBJECT EXPECTATION...
    object=$1 PATH=$work/bin:$PATH expect "${@:2}"
}
few=("${tiny[@]}" --segments=6 --pairs=2)
by_cmake old.so 6 'empty: no build folder, it has no CMakeCache.txt' ab old.so empty gather "${few[@]}" --build
by_cmake gone.so 6 'made: building engram_kernels failed, see above' ab old.so made gather "${few[@]}"
by_cmake old.so 0 'both hold the same code' ab old.so made gather "${few[@]}"
by_cmake gone.so 0 'both hold the same code' ab old.so made gather "${few[@]}"
by_cmake gone.so 6 'made: building engram_kernels failed, see above' ab old.so made gather "${few[@]}" --build
by_cmake same.so 0 ' 0 slower' ab old.so made gather "${few[@]}" --build
cmp -s same.so made/libengram_kernels.so || fail "--build did not build"

# ---- memory: three workers share the table, each has the rest for itself ----
point=(-a corpus=synthetic -a rows=1024 -a heads=2)
export ENG_MEMORY_BYTES=60000000
expect 0 'skipped +needs [0-9]+ bytes of memory \(table and weights [0-9]+, shared by 3 workers, and [0-9]+ in each\)' \
    ab old.so same.so gather "${point[@]}" -a tokens=64,4096 --segments=6 --pairs=2
expect 7 'no point fits this machine: needs [0-9]+ bytes' ab old.so same.so gather "${point[@]}" -a tokens=4096
unset ENG_MEMORY_BYTES

# ---- refusals ----
expect 6 'no such file or folder' ab old.so gone.so gather
expect 6 'neither libengram_kernels.so nor CMakeCache.txt' ab old.so "$work" gather
expect 6 'no shared object' ab old.so text.so gather
expect 6 'exports no eng_plugin' ab old.so none.so gather
expect 6 'plugin version 999, this program has' ab old.so bad_abi.so gather
expect 6 'made for other headers' run gather --plugin=bad_layout.so "${point[@]}"
expect 1 'mine already|kernel mine' run gather --plugin=old.so --plugin=same.so "${point[@]}"
expect 1 '^error engram: -a pairs=60: a comparison has --pairs, --segments and --budget' ab old.so same.so gather "${tiny[@]}" -a pairs=60
expect 1 '^error engram: -a trace=20: ' ab old.so same.so gather "${tiny[@]}" -a trace=20
expect 1 'segments=3' ab old.so same.so gather --segments=3
[ "$failures" = 0 ] && echo "ab holds"
exit "$failures"
