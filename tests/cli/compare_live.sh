#!/usr/bin/env bash
# label: nightly. engram compare on this machine as it is now: of ten pairs of runs of the same code at most one may be
# called different; the example kernel with all rows decoded twice is called slower at least four times of five.
# Arguments: the program, the source folder.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
gcc -O3 -shared -fPIC -I"$source/include" -o same.so "$source/docs/examples/gather_plugin.c" || exit 1
gcc -O3 -shared -fPIC -I"$source/include" -DREPEAT=1 -o slow.so "$source/docs/examples/gather_plugin.c" || exit 1
measure() { # OBJECT
    "$engram" run gather --plugin=./"$1".so -a variant=mine -a corpus=synthetic -a rows=1024 -a heads=2 -a tokens=16,64 \
        -a pairs=20 --fresh --db="$1".db --data=. >/dev/null 2>err.txt || { cat err.txt; exit 1; }
}
compared() { # ARGUMENT...: exit code in $code
    code=0
    "$engram" compare "$@" >out.txt 2>err.txt || code=$?
    echo "exit $code, load $(cut -d' ' -f1 /proc/loadavg), $(grep -oE '[0-9.]+ +[0-9.]+\.\.[0-9.]+' out.txt | tr '\n' ';')"
}
alarms=0 found=0
measure same
for i in 1 2 3 4 5; do
    for again in 1 2; do
        measure same
        compared latest~1 latest --db=same.db
        grep -q '^0 slower, 0 faster, ' out.txt || alarms=$((alarms + 1))
    done
    measure slow
    compared latest latest --db=same.db --db-b=slow.db
    [ $code = 3 ] && found=$((found + 1))
done
echo "the same code called different $alarms of 10 times, slower code found $found of 5 times"
[ "$alarms" -le 1 ] && [ "$found" -ge 4 ]
