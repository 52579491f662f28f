#!/usr/bin/env bash
# label: nightly. The promises of engram ab on this machine as it is now, five times each: 5 % more work is called
# slower (exit 3), a rebuild of the same code never (exit 0). Arguments: the program, the source folder.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
for kind in 'old' 'same -falign-functions=128' 'slow -DREPEAT=20'; do
    set -- $kind
    gcc -O3 -shared -fPIC -I"$source/include" "${@:2}" -o "$1.so" "$source/docs/examples/gather_plugin.c" || exit 1
done
found=0 alarms=0
for i in 1 2 3 4 5; do
    for new in slow same; do
        "$engram" ab old.so $new.so gather -a corpus=synthetic -a rows=1024 -a heads=2 -a tokens=64 -a seed=$i --segments=30 \
            --db=e.db --data=. >out.txt 2>err.txt
        code=$?
        grep mine out.txt
        [ $new = slow ] && [ $code = 3 ] && found=$((found + 1))
        [ $new = same ] && [ $code != 0 ] && alarms=$((alarms + 1))
    done
done
echo "5 % slower found $found of 5 times, $alarms false alarms of 5"
[ "$found" = 5 ] && [ "$alarms" = 0 ]
