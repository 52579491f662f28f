#!/usr/bin/env bash
# The floor table holds for the whole tree, and a planted violation of each rule is found.
# Arguments: the program (unused here), the source folder.
set -u
source_dir=$2
check=$source_dir/scripts/check_includes
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

"$check" --root="$source_dir" || { echo "FAIL: the tree itself breaks a rule"; failures=1; }

# expect NAME FILE TEXT PATTERN: with TEXT appended to FILE in a copy, PATTERN is printed, exit 1.
expect() {
    local copy=$work/copy output
    rm -rf "$copy"
    mkdir -p "$copy"
    for folder in base include kernels sim bench reports; do cp -r "$source_dir/$folder" "$copy/"; done
    mkdir -p "$(dirname "$copy/$2")" "$copy/kernels/store"
    echo 'typedef int EngPlanted;' >"$copy/kernels/store/planted.h"
    printf '%b\n' "$3" >>"$copy/$2"
    if output=$("$check" --root="$copy"); then
        echo "FAIL: $1: not noticed"
        failures=1
    elif ! grep -qE "$4" <<<"$output"; then
        echo "FAIL: $1: no line matches '$4' in:"
        echo "$output"
        failures=1
    fi
}

expect "higher floor" base/mem.c '#include "bench/core/experiment.h"' \
    '^base/mem\.c:[0-9]+: .*higher floor, bench/core'
expect "sibling" kernels/ref/planted.c '#include <stdio.h>\n#include "kernels/store/planted.h"' \
    '^kernels/ref/planted\.c:2: .*sibling on its own floor, kernels/store'
expect "missing header" base/mem.c '#include "base/absent.h"' '^base/mem\.c:[0-9]+: .*no such header'
expect "public interface" include/engram/status.h '#include "base/mem.h"' \
    '^include/engram/status\.h:[0-9]+: .*public interface'
expect "parent folder" base/mem.c '#include "../base/str.h"' '^base/mem\.c:[0-9]+: .*repository root'
expect "SQLite outside its files" bench/core/stream.c '#include <sqlite3.h>' \
    '^bench/core/stream\.c:[0-9]+: <sqlite3\.h>'
expect "header that needs another" base/planted.h 'EngStatus planted(void);' \
    '^base/planted\.h:1:.*compiled alone'
expect "unknown folder" kernels/planted/a.c '#include <stdio.h>' 'kernels/planted/a\.c:1: .*floor table'

[ "$failures" = 0 ] && echo "include rules hold"
exit "$failures"
