#!/usr/bin/env bash
# label: slow
# The page of a plan: one file that needs no other, each figure with a sentence and what it rests on, and what changed since
# the plan before. Arguments: the program, the source folder.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export ENG_REPORTS_DIR=$source/reports
failed=0
fail()
{
    echo "FAILED: $*"
    failed=1
}
for i in $(seq 50); do echo "[$(seq -s, $((i % 7 + 1)) $((i % 7 + 90)))$(printf ',%d' $((i % 3 + 1)) 5 6 5 6 5 6 5 6 5 6)]"; done >text.jsonl
"$engram" stream import text.jsonl --data=data --name=text --vocab=97 >out.txt 2>&1 || fail "import: $(cat out.txt)"
plan() # latency of the link
{
    "$engram" size --model=tiny --machine=h200 --machine=epyc-9005 --machine=nvme-gen5 --path=hbm --path=dram,pcie --path=nvme,pcie \
        --layers=8 --shards=1 --copies=1 --ranks=2 --host-devices=8 --years=4 --data=data --corpus=text --db=plan.db \
        --traffic=decode,streams=64,drafted=3,accepted=2,layer=200us,rate=100k/s --traffic=prefill,tokens=2048,layer=2ms,rate=1M/s \
        --slo=decode=2ms,prefill=50ms --assume=hbm.latency=600ns --assume=hbm.efficiency=50% --assume=pcie.latency=$1 \
        --assume=pcie.efficiency=83% --assume=dram.efficiency=50% --assume=nvme.latency=80us --assume=nvme.efficiency=90% \
        --training=ranks=64,group=8,node=8,tokens=4096,unique=0.5,state=4B,gradient=2B,near=400GB/s,far=40GB/s,stages=4 \
        >out.txt 2>err.txt || fail "a plan: $(cat err.txt)"
}
plan 1.5us
sleep 0.01 # runs of one millisecond have no order
plan 3us
"$engram" report capacity --db=plan.db --out=page >out.txt 2>err.txt || fail "the report: $(cat err.txt)"
[ "$(cat out.txt)" = page/index.html ] || fail "the path is not told"
page=page/index.html
drawn=$(grep -c '<figure id=' $page)
[ "$drawn" -ge 17 ] || fail "$drawn figures"
[ "$(grep -o '<img src="data:image/svg+xml' $page | wc -l)" = "$drawn" ] || fail "a picture lies beside the page"
[ "$(grep -c 'href="data:text/csv' $page)" = "$drawn" ] || fail "a figure has no CSV"
grep -qE '(src|href)="[a-z_]*\.(svg|png|csv)"' $page && fail "the page needs another file"
[ "$(grep -c '>Rests on: ' $page)" -ge 16 ] || fail "a figure does not say what it rests on"
for words in 'F1. What fits where?</strong> ' 'corpus text (imported' 'Against run ' 'Not priced: ' 'left for context, 2 ranks' \
    '(simulated)</dd>' 'this database holds no validation' 'A group of 8 ranks holds'; do
    grep -qF "$words" $page || fail "the page does not say \"$words\""
done
for figure in page/*.dat; do
    csv=${figure%.dat}.csv
    [ "$(wc -l <"$figure")" -le "$(wc -l <"$csv")" ] || fail "$csv has fewer rows than its picture"
done
exit $failed
