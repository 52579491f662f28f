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
        >plan.txt 2>err.txt || fail "a plan: $(cat err.txt)"
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
    '(simulated)</dd>' 'this database holds no validation' ' without nvme for the tables</td>' 'Groups of 1 hold' 'groups of 8 hold' 'exchange gradients between replicas' \
    ', power. Prices are those' ', peer-read ' 'the longest of a tier binds it, as the plan says'; do
    grep -qF "$words" $page || fail "the page does not say \"$words\""
done
# The limit that the picture marks is the plan's: of a link that takes 3 us before any row, its latency.
grep -q ',pcie,latency (simulated),3,1\b' page/limits.csv && ! grep ',pcie,' page/limits.csv | grep -v ',latency ' | grep -q ',1[^0-9.]*$' ||
    fail "F5 marks another limit: $(grep ',pcie,' page/limits.csv)"
grep -q ' pcie: .*latency 3 us (binds)' plan.txt || fail "the plan says another limit"
# Own training runs beside the paper's: four shares of experts with two seeds, one more of a third seed, and arms of other
# training settings, of which there are fewer. Loss is 3 + (rho - 0.5)^2 + seed / 10.
grep -qF 'This database holds no curve of own runs' $page || fail "own runs from nowhere"
{
    echo "INSERT INTO blocks SELECT 'own', run_id, 0, 'train', '', 1, 0, 1, 1, 'done' FROM runs LIMIT 1; UPDATE runs SET sweep_name = 'rho-of-a-test' WHERE run_id = (SELECT run_id FROM blocks WHERE block_id = 'own');"
    n=0
    for arm in 0.2,1 0.4,1 0.8,1 1,1 0.2,2 0.4,2 0.8,2 1,2 0.4,3 other,1; do
        n=$((n + 1)) rho=${arm%,*} rate=-1
        [ "$rho" = other ] && rho=0.2 rate=0.1
        echo "INSERT INTO points SELECT 'own$n', 'own$n', 'train', '', 'cpu', 'imported', 0, '', machine_id, NULL, NULL, NULL,
            json_object('rho', $rho, 'memory', 0, 'engram_at', '1', 'budget', 20, 'rung', 'R', 'text', 'training', 'streams', -1, 'lr', $rate, 'model_seed', ${arm#*,}, 'threads', 1),
            'runs.csv: a test' FROM points LIMIT 1;
            INSERT INTO block_points VALUES ('own', 'own$n', $n, 'done', 'measured', NULL, 'finished');
            INSERT INTO sample_values VALUES ('own', 'own$n', 0, $n, 'loss', 3 + ($rho - 0.5) * ($rho - 0.5) + ${arm#*,} / 10.0), ('own', 'own$n', 0, $n, 'rho_actual', $rho);"
    done
    # Gates of two widths: the page shows those of the one with more of them.
    for gate in 64,0,0 64,0.5,0.2 64,1,0.4 5120,0,0.8; do
        n=$((n + 1))
        IFS=, read -r hidden alignment saturated <<<"$gate"
        echo "INSERT INTO points SELECT 'gate$n', 'gate$n', 'gate', '', 'cpu', 'measured', 0, '', machine_id, NULL, NULL, NULL,
            json_object('hidden', $hidden, 'formula', 'copysign', 'alignment', $alignment), '' FROM points LIMIT 1;
            INSERT INTO block_points VALUES ('own', 'gate$n', $n, 'done', 'measured', NULL, 'finished');
            INSERT INTO samples VALUES ('own', 'gate$n', 0, $n, 0, 1, 1, 1, 0);
            INSERT INTO sample_values VALUES ('own', 'gate$n', 0, $n, 'sat_05', $saturated);"
    done
} | sqlite3 plan.db || fail "no runs could be added"
"$engram" report capacity --db=plan.db --out=own >out.txt 2>err.txt || fail "the report with own runs: $(cat err.txt)"
for words in 'own R, 20 tokens per parameter (imported): best at rho 40 %' 'Own rho: 8 runs of small models, of the sweep rho-of-a-test' \
    'Rests on: runs.csv: a test'; do
    grep -qF "$words" own/index.html || fail "F19 does not say \"$words\""
done
grep -q ',rho,"*own R, 20 tokens per parameter (imported)"*,100.*,0\.2[34]' own/ablations.csv || fail "F19 has another curve: $(grep own own/ablations.csv)"
[ "$(grep -c ',gate,' own/ablations.csv)" = 3 ] && grep -q ',gate,"*gates, formula copysign"*,0[.0]*,0[.0]*,' own/ablations.csv ||
    fail "F19 mixes gates of two widths: $(grep gate own/ablations.csv)"
# N-grams behind the rows that lengths of a text touch, of 15 in a head on the mean, on a straight line of logarithms to a billion tokens.
for i in $(seq 50); do echo "[$(for j in $(seq 99); do printf '%d,' $((5 + j % (1 + i / 26 + i / 38))); done)5]"; done >few.jsonl
"$engram" stream import few.jsonl --data=data --name=few --vocab=97 >out.txt 2>&1 || fail "import: $(cat out.txt)"
"$engram" size --model=tiny --machine=epyc-9005 --path=dram --assume=dram.efficiency=50% --layers=8 --shards=1 --copies=1 --data=data --corpus=few \
    --traffic=prefill,tokens=64,layer=1ms --db=few.db >out.txt 2>err.txt || fail "a plan of few n-grams: $(cat err.txt)"
touched=$(sqlite3 few.db "SELECT printf('%.4f', median) FROM v_summary WHERE metric = 'share' AND axes_json ->> '$.what' = 'heaps'")
expected=$(sqlite3 -separator ' ' few.db "SELECT axes_json ->> '$.stream_tokens', median FROM v_summary WHERE metric = 'cold' AND axes_json ->> '$.what' = 'length'" |
    awk -v m=15 '{ x = log($1); y = log(-m * log(1 - $1 * $2 / m)); n++; sx += x; sy += y; sxx += x * x; sxy += x * y }
        END { b = (n * sxy - sx * sy) / (n * sxx - sx * sx); printf "%.4f", 1 - exp(-exp((sy - b * sx) / n + b * log(1e9)) / m) }')
[ "$touched" = "$expected" ] || fail "a billion tokens touch $touched of a head's rows, not $expected"
"$engram" report capacity --db=few.db --out=few >out.txt 2>err.txt || fail "its report: $(cat err.txt)"
grep -q "a billion tokens would touch .* % of a head.*s rows (extrapolated)" few/index.html || fail "the page does not extrapolate n-grams"
# What a manager would trip over, by hand: through PCI Express a token is 24 rows of 3 x 128 B at 53.12 GB/s, so 600 us less 1.61
# us are for 3449 tokens; 8192 take 1422.86 us, and wait for 822.86 of a step of 24 ms and that. Prefill's step of 800 ms misses; a host
# has two replicas of 5333 tokens/s decoded, or 20480 prefilled: 94 and 25 hosts for a million, 9 and 23 for it in parts of 1 and 10.
"$engram" size --model=v41-flash --machine=h200 --machine=epyc-9005 --path=dram,pcie --path=hbm --layers=40 --shards=1 --copies=1 --ranks=4 --host-devices=8 \
    --unique=0.9 --hits=0 --traffic=prefill,tokens=16384,layer=20ms,rate=1M/s --traffic=decode,streams=128,layer=600us,rate=100k/s \
    --assume=hbm.latency=600ns --assume=hbm.efficiency=50% --assume=pcie.latency=1.5us --assume=pcie.efficiency=83% --assume=dram.efficiency=50% \
    --slo=decode=25ms,prefill=500ms --years=4 --db=marks.db >out.txt 2>err.txt || fail "a plan of two kinds: $(cat err.txt)"
"$engram" report capacity --db=marks.db --out=marks >out.txt 2>err.txt || fail "its report: $(cat err.txt)"
for words in 'hbm: device holds 288 GB of 141 GB, which does not fit' 'all together at 1,000,000 tokens/s: dram,pcie 32 (misses), hbm 32 (misses, does not fit)' \
    'decode 128 at 1,000,000 tokens/s: dram,pcie 94, hbm 94 (does not fit)' 'through hbm: 0.1389 to 0.3889 USD, does not fit' \
    '(decode 128, layer 1, 600 µs), between the steps drawn, without cache or deduplication: dram,pcie (simulated) about 3449 tokens' \
    '. The window grows from 0 µs at layer 0 to 780,000 µs at layer 39, so' 'prefill 16384: one host at 100,000 tokens/s' 'given the layers of the first traffic, 800 ms a step'; do
    grep -qF "$words" marks/index.html || fail "the page does not say \"$words\""
done
# Power is a part of the bill where it has a price, and then is no longer missing.
"$engram" size --model=v41-flash --machine=h200 --machine=epyc-9005 --path=dram,pcie --layers=40 --shards=1 --copies=1 --ranks=4 --host-devices=8 --unique=1 \
    --hits=0 --traffic=decode,streams=128,layer=600us,rate=100k/s --assume=pcie.latency=1.5us --assume=pcie.efficiency=83% --assume=dram.efficiency=50% \
    --years=4 --assume=dram.power=800W --power-price=0.1USD/kWh --db=power.db >out.txt 2>err.txt || fail "a plan with power: $(cat err.txt)"
"$engram" report capacity --db=power.db --out=power >out.txt 2>err.txt || fail "its report: $(cat err.txt)"
grep -qF 'Not priced: nothing. Prices' power/index.html && grep -q ',power (simulated),' power/cost.csv || fail "F14 has no power: $(grep -o 'Not priced[^.]*' power/index.html)"
# The page says of each path whether it fits as the plan does: what can be pinned is a limit too, and a capacity that nobody gave is none.
"$engram" size --model=v41-flash --machine=gb10 --path=dram --path=nvme,dram --layers=40 --shards=1 --copies=1 --ranks=4 --host-devices=1 --unique=1 --hits=0 \
    --traffic=decode,streams=128,layer=600us,rate=100k/s --assume=dram.latency=300ns --assume=dram.granule=64B --assume=dram.efficiency=60% \
    --assume=nvme.latency=80us --assume=dram.capacity=400GB --assume=dram.pin_limit=100GB --years=3 --db=fit.db >plan.txt 2>err.txt || fail "a plan that cannot pin: $(cat err.txt)"
grep -q 'through dram: does not fit' plan.txt && grep -q 'through nvme,dram: capacity not known' plan.txt || fail "the plan fits: $(grep verdict plan.txt)"
"$engram" report capacity --db=fit.db --out=fit >out.txt 2>err.txt || fail "its report: $(cat err.txt)"
for words in '<td>no: pinned</td>' '<td>capacity not known</td>' 'at 1,000,000 tokens/s: dram 752 (does not fit), nvme,dram 3924 (capacity not known)' \
    'through dram: 0.0321 to 0.0321 USD, does not fit; ' 'through nvme,dram: 0.1673 to 0.1673 USD, capacity not known\. '; do
    grep -q "$words" fit/index.html || fail "the page of what fits does not say \"$words\""
done
# A plan of a version that did not count what a host has is drawn without that figure.
sqlite3 marks.db "DELETE FROM sample_values WHERE metric = 'value' AND point_key IN (SELECT point_key FROM v_summary WHERE axes_json ->> '$.what' = 'load')"
"$engram" report capacity --db=marks.db --out=old >out.txt 2>err.txt || fail "the report of an old plan: $(cat err.txt)"
grep -qF 'or was stored before they were counted' old/index.html || fail "the page does not say why F13 is not drawn"
# Memory that ends anywhere in a query is no fault of a file.
for n in $(seq 30 8 200); do
    ENG_FAIL_ALLOC=$n "$engram" report capacity --db=marks.db --out=old >out.txt 2>err.txt
    code=$?
    [ $code = 0 ] || { [ $code = 7 ] && grep -q 'out of memory' err.txt; } || fail "allocation $n: exit $code: $(cat err.txt)"
done
share() { # of the wait for rows at layer 1 in a step of 8192 tokens, layers of 600 us
    sqlite3 page_share.db "SELECT printf('%.4f', median) FROM v_summary WHERE metric = 'share' AND axes_json ->> '$.what' = 'hidden'
        AND axes_json ->> '$.path' = 'dram,pcie' AND axes_json ->> '$.placement' = 1 AND axes_json ->> '$.tokens' = 8192"
}
"$engram" size --model=v41-flash --machine=h200 --machine=epyc-9005 --path=dram,pcie --layers=40 --shards=1 --copies=1 --unique=1 --hits=0 \
    --traffic=decode,streams=128,layer=600us --assume=pcie.latency=1.5us --assume=pcie.efficiency=83% --assume=dram.efficiency=50% \
    --db=page_share.db >out.txt 2>err.txt || fail "a plan of one kind: $(cat err.txt)"
[ "$(share)" = 0.0331 ] || fail "a wait is $(share) of its step, not 822.86 / 24822.86"
for figure in page/*.dat; do
    csv=${figure%.dat}.csv
    [ "$(wc -l <"$figure")" -le "$(wc -l <"$csv")" ] || fail "$csv has fewer rows than its picture"
done
exit $failed
