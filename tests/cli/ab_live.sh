#!/usr/bin/env bash
# label: nightly. The promises of engram ab on this machine as it is now, five times each: a kernel that takes about
# 5 % longer is called slower (exit 3), a rebuild of the same code the same (exit 0). The slowed kernel holds the same
# instructions and another number of rows decoded twice. Arguments: the program, the source folder.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
for kind in 'old' 'same -g -falign-functions=128' 'slow -DREPEAT=24'; do
    set -- $kind
    gcc -O3 -shared -fPIC -I"$source/include" "${@:2}" -o "$1.so" "$source/docs/examples/gather_plugin.c" || exit 1
done
found=0 same=0
for i in 1 2 3 4 5; do
    for new in slow same; do
        "$engram" ab old.so $new.so gather -a corpus=synthetic -a rows=1024 -a heads=2 -a tokens=64 -a seed=$i --segments=30 \
            --db=e.db --data=. >out.txt 2>err.txt
        code=$?
        echo "$new: exit $code, load $(cut -d' ' -f1 /proc/loadavg), $(grep -o 'mine.*' out.txt)"
        [ $new = slow ] && [ $code = 3 ] && grep -q 'mine  *slower' out.txt && found=$((found + 1))
        [ $new = same ] && [ $code = 0 ] && grep -q 'mine  *same' out.txt && same=$((same + 1))
    done
done
echo "5 % slower found $found of 5 times, the same code called the same $same of 5 times"
[ "$found" = 5 ] && [ "$same" = 5 ]
