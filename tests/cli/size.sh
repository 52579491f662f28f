#!/usr/bin/env bash
# label: fast
# engram size from the outside: a plan rests only on values with a source or an assumption that was given; what is
# missing is asked for. Arguments: the program, the source folder.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
fail()
{
    echo "FAILED: $*"
    failed=1
}
step="--tokens=128 --layers=61 --layer-time=800us --unique=1 --hits=0 --shards=1 --copies=1"
host="--machine=h200 --machine=epyc-9005 --path=dram,pcie --tables=host $step"
assume="--assume=pcie.latency=1.5us --assume=pcie.efficiency=83% --assume=dram.efficiency=50%"

"$engram" size $host $assume >out.txt 2>err.txt || fail "a plan: exit $?: $(cat err.txt)"
for words in '188.83 GiB  in all' 'verdict: fits, hidden' 'pcie.latency = 1.5e-06 s, assumed' 'dram.latency = .*measured 20' \
    'layer 14: hidden' 'not counted' extrapolated; do
    grep -q -- "$words" out.txt || fail "a plan does not say \"$words\""
done
"$engram" size --machine=nvme-gen5 --path=nvme --tables=drive --assume=nvme.latency=80us --assume=nvme.efficiency=90% $step \
    >out.txt 2>err.txt || fail "a drive: exit $?"
grep -q 'layer 1: NOT hidden' out.txt || fail "a drive hides"
grep -q 'hidden if nvme took' out.txt || fail "no cure"
grep -q '^drive .*table values' out.txt || fail "tables are not on the drive"
"$engram" size --machine=h200 --path=hbm --tables=device --assume=hbm.latency=600ns --assume=hbm.efficiency=50% $step \
    >out.txt 2>err.txt || fail "a device: exit $?"
grep -q 'verdict: does not fit, hidden' out.txt || fail "203 GB fit 141 GB"

expect() # exit code, words on stderr, options
{
    "$engram" size $3 >out.txt 2>err.txt
    code=$?
    [ $code = "$1" ] || fail "size $3: exit $code, not $1"
    grep -q -- "$2" err.txt || fail "size $3: $(cat err.txt), not \"$2\""
    [ -s out.txt ] && fail "size $3: printed a plan"
}
expect 2 'dram.efficiency=50%' "$host"
expect 1 'did you mean "h200"' "--machine=h20 --path=hbm $step"
expect 1 'machine is needed' "--path=hbm $step"
expect 1 'path is needed' "--machine=h200 $step"
expect 1 'names no tier' "${host/dram,pcie/} $assume"
expect 1 'has no tier "dram"' "--machine=h200 --path=dram $step --tables=host"
expect 1 'has a tier hbm already' "--machine=h200 --machine=h100 --path=hbm $step"
for option in tokens layers layer-time unique hits tables shards copies; do
    expect 1 "$option is needed" "$(echo "$host $assume" | sed "s/--$option=[^ ]*//")"
done
expect 1 'layer-time\|800' "${host/800us/800} $assume"
expect 1 'not above 0\|0us' "${host/800us/0us} $assume"
expect 1 '-1us' "$host --assume=pcie.latency=-1us"
expect 1 'layer 14 of 10' "${host/layers=61/layers=10} $assume"
expect 1 'not device, host or drive' "${host/tables=host/tables=moon} $assume"
expect 1 'a unique share of 2' "${host/unique=1/unique=2} $assume"
sed 's/"source": "[^"]*"/"source": ""/' "$source/sim/machine/presets/rdma-400g.json" >bare.json
expect 6 'bandwidth: has no source' "--machine=./bare.json --path=nic $step --tables=host"
head -c 200 "$source/sim/machine/presets/h200.json" >cut.json
expect 6 'cut.json' "--machine=cut.json --path=hbm $step --tables=device"
expect 6 'none.json: no such file' "--machine=none.json --path=hbm $step --tables=device"
exit $failed
