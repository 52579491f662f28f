#!/usr/bin/env bash
# label: nightly. engram ab between build folders: the kernels of a folder are built when they are missing; edit,
# compile and verdict in one command; a broken edit is told. skips: no cmake. Arguments: the program, the source folder.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
command -v cmake >/dev/null || { echo "skipped: no cmake"; exit 77; }
failures=0
fail() { echo "FAIL: $*"; failures=1; }
expect() { # expect CODE PATTERN ARGUMENT...
    local code=$1 pattern=$2 output got=0
    shift 2
    output=$("$engram" ab "$@" --db="$work/e.db" --data="$work" 2>&1) || got=$?
    [ "$got" = "$code" ] || fail "$*: exit $got, expected $code: $(tail -5 <<<"$output")"
    grep -qE -- "$pattern" <<<"$output" || fail "$*: no '$pattern' in: $(tail -5 <<<"$output")"
}
# A copy of the sources, so that they can be edited.
mkdir tree
(cd "$source" && tar -c --exclude=data/cache CMakeLists.txt cmake base include kernels bench reports scripts) | tar -x -C tree
generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
for folder in build other; do
    cmake -S tree -B $folder "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS="$([ $folder = build ] ||
        echo -falign-functions=128)" >cmake.txt 2>&1 || { cat cmake.txt; exit 1; }
done
point=(gather -a corpus=synthetic -a rows=1024 -a heads=2 -a tokens=64 -a variant=naive)

# Neither holds the object yet: both are built; the same code laid out otherwise is not slower.
expect 0 'cmake --build other --target engram_kernels' build other "${point[@]}"
expect 0 ' 0 slower' build other "${point[@]}"
expect 0 'both hold the same code' build build "${point[@]}" --segments=6

# Edit: every call decodes all rows twice. Compile and verdict in one command.
cp build/libengram_kernels.so old.so
edited=tree/kernels/cpu/gather_portable.c
sed -i 's/^    eng_cpu_gather_parts(problem, &args->u.gather, part_plain, &plan, SIZE_MAX);/&\n&/' $edited
[ "$(grep -c 'part_plain, &plan' $edited)" = 2 ] || fail "the edit does not fit $edited"
expect 0 'both hold the same code' old.so build "${point[@]}" --segments=6 # not compiled yet
expect 3 'naive +slower' old.so build "${point[@]}" --build
# An edit that does not compile.
echo 'not C' >>$edited
expect 6 'build: building engram_kernels failed, see above' old.so build "${point[@]}" --build
[ "$failures" = 0 ] && echo "ab of build folders holds"
exit "$failures"
