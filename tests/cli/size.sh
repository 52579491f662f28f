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
traffic=--traffic=decode,streams=128,layer=800us
step="--model=v41-flash $traffic --layers=40 --unique=1 --hits=0 --shards=1 --copies=1"
host="--machine=h200 --machine=epyc-9005 --path=dram,pcie $step"
assume="--assume=pcie.latency=1.5us --assume=pcie.efficiency=83% --assume=dram.efficiency=50%"
device="--machine=h200 --path=hbm --assume=hbm.latency=600ns --assume=hbm.efficiency=50%"
drive="--machine=nvme-gen5 --path=nvme --assume=nvme.latency=80us --assume=nvme.efficiency=90%"

says() # words that the plan in out.txt must have
{
    for words in "$@"; do
        grep -q -- "$words" out.txt || fail "a plan does not say \"$words\""
    done
}

"$engram" size $host $assume >out.txt 2>err.txt || fail "a plan: exit $?: $(cat err.txt)"
says '188.83 GiB  in all' 'through dram,pcie: fits, hidden' 'pcie.latency = 1.5e-06 s, assumed' \
    'dram.latency = .*measured 20' 'layer 14: hidden' 'weights are not counted: --ranks' 'caches are not counted' \
    'extrapolated: not every' 'assumption: dram.efficiency' 'pinning not known (dram.pin_rate)' 'interference through dram,pcie: not given'
# The same with all that can be asked for: weights by shape, hosts, cost, a mean to keep, training, several paths.
"$engram" size $host $assume $drive --ranks=4 --host-devices=8 --context=1000000 --kv=fp8 --years=4 \
    --traffic=prefill,tokens=4096,layer=9ms,rate=1M/s --slo=decode=40ms,prefill=1s --reserve=graphs=22GiB \
    --assume=dram.pin_rate=4GB/s --assume=dram.populate_rate=2GB/s --interference=fetch=10%,compute=2% \
    --training=ranks=512,group=64,node=8,tokens=65536,unique=0.5,state=4B,gradient=2B,near=400GB/s,far=40GB/s,stages=8 \
    >out.txt 2>err.txt || fail "a large plan: exit $?: $(cat err.txt)"
says '63.28 GiB  routed experts' '0.768 GB .* cache of latents of layers 2, 8, 14$' 'more tokens of context, of 1650 B each' '0.361 GB .* cache of windows$' '22.00 GiB  graphs' 'hosts: .* for 1e+06 tokens/s' \
    'a host asks pcie for' 'devices .* to .* USD per million' 'dram for the tables' 'keeps the mean of 40 ms' \
    'keeps the mean of 1000 ms' 'pinning 50.7 s' 'verdict decode 128 through nvme' 'hosts, .* to .* USD per million tokens' \
    'groups of 64 in 512 ranks' '8 pipeline stages' 'nvme.latency = 8e-05 s, assumed'
grep -q 'pcie.unit_price\|without: .*nvme' out.txt || fail "an unpriced drive is not told"
"$engram" size $drive $step >out.txt 2>err.txt || fail "a drive: exit $?"
says 'layer 1: NOT hidden' 'hidden if nvme took' '^drive .*table values' 'not hidden'
"$engram" size $device $step >out.txt 2>err.txt || fail "a device: exit $?"
says 'through hbm: does not fit, hidden'
"$engram" size $device $step --slo=20ms >out.txt 2>err.txt || fail "an SLO: exit $?"
says 'misses the mean of 20 ms'
# Eight devices that share the tables: 192 rows each in 0.6 + 0.02 us, then 7 messages of 2 us and 0.355 MB at 360 GB/s.
shared="$device ${step/shards=1/shards=8} --traffic=decode,streams=64,layer=600us"
link="--assume=nvlink.latency=2us --assume=nvlink.efficiency=80%"
"$engram" size ${shared/$traffic/} --exchange=all-gather,nvlink $link --db=shared.db >out.txt 2>err.txt || fail "an exchange: $(cat err.txt)"
says 'readers: 8, each what it holds; all-gather over nvlink' '192 read by one reader' 'fetch 15.6086 us' \
    'exchange among holders: 14.9856 us' 'all-to-all 0.04435 MB in 28.13 us' 'no collective was measured' 'nvlink.latency = 2e-06 s, assumed' \
    'rests on: .*nvlink.bandwidth.*nvlink.efficiency'
[ "$(sqlite3 shared.db "SELECT count(*) FROM v_summary WHERE metric = 'term_us' AND axes_json ->> '$.what' = 'sharding'")" = 24 ] ||
    fail "exchanges are not stored with their times"
[ "$(sqlite3 shared.db "SELECT count(*) FROM points WHERE axes_json ->> '$.what' = 'sharding' AND provenance NOT LIKE 'extrapolated: latency and bandwidth of nvlink%'")" = 0 ] ||
    fail "an exchange over a link that nobody measured is not extrapolated"
# Peers: 168 of the 192 rows of each reader's own tokens come through the link, three blocks of 128 B each at 360 GB/s, in the gather.
peers="${shared/$traffic/} --exchange=peer-read"
"$engram" size $peers,nvlink $link --assume=nvlink.granule=128B --db=peers.db >out.txt 2>err.txt || fail "peers: $(cat err.txt)"
says 'readers: 8, each the rows of its own tokens, through nvlink those' '    nvlink: 504 requests, 0.06451 MB: bandwidth 0.1792 us, together 0.1792 us, latency 2 us (binds)$' \
    'fetch 2.7792 us' 'peer-read 0.04435 MB in 2.179 us' 'rests on: .*nvlink.granule'
grep -q 'exchange among holders' out.txt && fail "a collective beside peers"
of() { sqlite3 "$1" "SELECT group_concat(median) FROM (SELECT median, axes_json AS a FROM v_summary WHERE metric = '$2') WHERE $3"; }
[ "$(of peers.db value "a ->> '\$.what' = 'term' AND a ->> '\$.tier' = 'nvlink' AND a ->> '\$.limit' = 'latency'")" = 1.0 ] &&
    [ "$(of peers.db value "a ->> '\$.what' = 'term' AND a ->> '\$.tier' = 'nvlink' AND a ->> '\$.limit' = 'bandwidth'")" = 0.0 ] ||
    fail "the figure of limits is told another limit than the plan"
[ "$(of peers.db bytes "a ->> '\$.scheme' = 'peer-read' AND a ->> '\$.ranks' = 8")" = 44352.0 ] || fail "peers are not in the figure of sharing"
# Messages: 168 rows are two of them each at 45 M/s, or one where every holder has all scales, 6.1 GB of them, and reads its own.
"$engram" size $peers,nic --assume=nic.latency=4us --assume=nic.efficiency=90% >out.txt 2>err.txt || fail "messages: $(cat err.txt)"
says '    nic: 336 requests, .* request rate 7.46667 us (binds)'
"$engram" size $peers,nic --assume=nic.latency=4us --assume=nic.efficiency=90% --scales=everywhere --db=everywhere.db >out.txt 2>err.txt ||
    fail "scales everywhere: $(cat err.txt)"
says '    nic: 168 requests, 0.04301 MB: .* request rate 3.73333 us' '    hbm: 1728 requests' 'device  *3.072 GB .*table scales (layer 1)$' \
    'scales: all of them with every holder' 'all-gather 0.3441 MB'
[ "$(of everywhere.db bytes "a ->> '\$.scheme' = 'peer-read' AND a ->> '\$.ranks' = 8 AND a ->> '\$.scales' = 'everywhere'")" = 43008.0 ] ||
    fail "scales everywhere are not in the figure of sharing"
# Ranks of the same tokens read the scales of all 1536 rows each: 192 x 8 blocks of values and 1536 of scales.
"$engram" size ${shared/$traffic/} --exchange=all-gather,nvlink $link --scales=everywhere >out.txt 2>err.txt || fail "scales of all rows: $(cat err.txt)"
says '    hbm: 3072 requests'
# An adapter between holders that is of no device has a price like others.
"$engram" size ${shared/$traffic/} --machine=rdma-400g --exchange=peer-read,rdma --assume=rdma.latency=4us --traffic=decode,streams=64,layer=601us,rate=1k/s \
    --ranks=8 --host-devices=8 --years=4 >out.txt 2>err.txt || fail "an adapter between holders: $(cat err.txt)"
says 'without: rdma between holders (no price is known'
# Each of the devices has one, in its bill and power as in its time: 8 x 1500 USD over 4 years of 8766 h and 8 x 25 W at 0.1 USD/kWh for
# 1000 tokens/s. The memories of the eight are theirs too, and what replicas of a host share is none of it.
own="$device $link --machine=rdma-400g --assume=nvlink.granule=128B --assume=rdma.latency=4us --assume=nic.latency=4us --assume=nic.efficiency=90% --host-devices=8 --years=4"
own="$own --model=v41-flash --layers=40 --unique=1 --hits=0 --copies=1 --traffic=decode,streams=64,layer=600us,rate=1k/s"
"$engram" size $own --shards=8 --ranks=8 --exchange=peer-read,rdma --assume=rdma.unit_price=1500USD --assume=rdma.power=25W --power-price=0.1USD/kWh >out.txt 2>err.txt ||
    fail "priced adapters: $(cat err.txt)"
says '  rdma between holders  *0.0951 to 0.0951 USD' '  power  *0.00556 to 0.00556 USD' 'a host asks hbm .*of one; its 8 readers have one each$'
for exchange in peer-read,nic all-gather,nic; do
    "$engram" size ${own/1k/1M} --shards=4 --ranks=4 --exchange=$exchange >out.txt 2>err.txt || fail "adapters of devices: $(cat err.txt)"
    says 'a host asks hbm .*its 8 readers have one each$'
    grep 'shared by replicas\|replicas of a host' out.txt && fail "$exchange: an adapter of a device is shared"
done
# What eight devices of a host have in its memory, that carries for all of them: 1536 scales for each.
"$engram" size $own --machine=epyc-9005 --assume=dram.efficiency=50% --shards=8 --ranks=8 --exchange=all-gather,nvlink --scales=dram >out.txt 2>err.txt ||
    fail "scales of devices: $(cat err.txt)"
says '    dram: 1.229e+04 requests'
# Sixteen fill two hosts, also where nobody tells of how many devices a replica is: 8 x 119.07 rows of the fullest, 16 scales each.
for ranks in '' --ranks=16; do
    "$engram" size $(echo "$own" | sed 's/--years=4//; s/,rate=1k\/s//') --machine=epyc-9005 --assume=dram.efficiency=50% --shards=16 $ranks \
        --exchange=all-gather,nvlink --scales=dram >out.txt 2>err.txt || fail "devices of two hosts: $(cat err.txt)"
    says '    dram: 1.524e+04 requests'
done
# Eight hosts that share them: the memory of each carries its 192 rows alone, of 4 lines of values and one of scales.
"$engram" size --machine=h200 --machine=epyc-9005 ${step/shards=1/shards=8} ${traffic/128/64} --path=dram --exchange=all-gather,nic --assume=dram.efficiency=50% \
    --assume=nic.latency=4us --assume=nic.efficiency=90% >out.txt 2>err.txt || fail "an exchange of hosts: $(cat err.txt)"
says 'dram: 960 requests'
"$engram" size --machine=h200 --machine=epyc-9005 ${drive/--path=nvme/} $(echo "$step" | sed 's/shards=1/shards=8/; s/hits=0/hits=50%/') --path=nvme,dram --exchange=all-gather,nic --assume=dram.efficiency=50% \
    --assume=nic.latency=4us --assume=nic.efficiency=90% --cache=16GB@dram >out.txt 2>err.txt || fail "a cache of an exchange: $(cat err.txt)"
says '^host  *2.000 GB .*row cache, pinned'
# Two of a replica's four hosts hold tables, and the cache with them.
"$engram" size --machine=h200 --machine=epyc-9005 ${drive/--path=nvme/} $(echo "$step" | sed 's/shards=1/shards=2/; s/hits=0/hits=50%/') --path=nvme,dram --exchange=all-gather,nic --assume=dram.efficiency=50% \
    --assume=nic.latency=4us --assume=nic.efficiency=90% --cache=16GB@dram --ranks=32 --host-devices=8 >out.txt 2>err.txt || fail "a cache of some hosts: $(cat err.txt)"
says '^host  *8.000 GB .*row cache, pinned'
"$engram" size ${shared/$traffic/} >out.txt 2>err.txt || fail "no exchange: $(cat err.txt)"
says 'exchange among holders: not given, counted as nothing'
# A cache lies in a tier that the path passes: 16 GB that two replicas of a host have each, in its memory, whose rows
# cross the link as all others do. 3072 rows of 264 B, of which the drive reads 768 in two pages each at 2.5 M/s.
"$engram" size ${drive/--path=nvme/} --machine=h200 --machine=epyc-9005 $assume --path=nvme,dram,pcie ${step/hits=0/hits=0.75} --cache=16GB@dram \
    --ranks=4 --host-devices=8 >out.txt 2>err.txt || fail "a cache: $(cat err.txt)"
says '^host  *32.000 GB .*row caches of replicas, pinned' '3072 read by one reader; 75 % of them from the cache in dram' 'nvme: 1536 requests' \
    'dram: 1.536e+04 requests' 'pcie: 9216 requests' 'hits 0.75: --unique and --hits, cache of 16 GB in dram'
"$engram" size ${drive/--path=nvme/} --machine=h200 --machine=epyc-9005 $assume --path=nvme,dram,pcie ${step/hits=0/hits=0.75} --cache=9000GB@dram >out.txt 2>err.txt ||
    fail "a large cache: $(cat err.txt)"
says 'host: .* does not fit by .*its largest line is row cache' 'verdict .*does not fit'
# A cache that holds all leaves the drive nothing to do; 80 us are in no layer's fetch.
"$engram" size ${drive/--path=nvme/} --machine=h200 --machine=epyc-9005 $assume --path=nvme,dram,pcie ${step/hits=0/hits=100%} --cache=16GB@dram >out.txt 2>err.txt ||
    fail "a cache of all: $(cat err.txt)"
says 'layer 1: hidden: fetch 23.8' '^    nvme: nothing to fetch$'
# Of 4 GB in the memory of four readers each has one; a replica of two hosts has half of its 16 GB on each.
host_hbm=$(echo "$host" | sed 's/--path=dram,pcie/--path=dram,pcie,hbm/; s/--hits=0/--hits=50%/')
"$engram" size $host_hbm $assume --assume=hbm.latency=600ns --assume=hbm.efficiency=50% --cache=4GB@hbm --readers=4 --ranks=4 --host-devices=4 \
    >out.txt 2>err.txt || fail "a cache of readers: $(cat err.txt)"
says '^device  *1.000 GB .*row cache$' '768 read by one reader, 3072 by all 4; 50 % of them from the cache in hbm'
"$engram" size ${drive/--path=nvme/} --machine=h200 --machine=epyc-9005 $assume --path=nvme,dram,pcie ${step/hits=0/hits=0.75} --cache=16GB@dram \
    --ranks=16 --host-devices=8 --assume=dram.pin_limit=8GB >out.txt 2>err.txt || fail "a cache over hosts: $(cat err.txt)"
says '^host  *8.000 GB .*row cache, pinned' 'host: 7.45 GiB are to be pinned, 7.45 GiB can be' 'verdict .*does not fit'
# Bytes in memory have their price wherever on the path it is; a drive that two replicas share is named.
"$engram" size $drive --machine=h200 --machine=epyc-9005 $assume --path=nvme,dram --scales=dram ${step/800us/800us,rate=10k/s} --ranks=4 --host-devices=8 \
    --years=4 --assume=nvme.unit_price=1500USD >out.txt 2>err.txt || fail "a price: $(cat err.txt)"
says '  dram  *0.0000[1-9][0-9]* to 0.000[1-9][0-9]* USD' 'a host asks nvme .*its 2 replicas share it' 'nvme: shared by replicas, 1\.' 'out of step with each other, share nvme dram'
grep -q 'without: .*dram' out.txt && fail "memory with a price is called unpriced"
# Bytes of a host lie in one memory, that of its tables, cache or scales, whose capacity and limit they have: scales and staging are
# pinned in what holds the scales. What rows only come through has none, and no price for it.
memories="--machine=h200 --machine=epyc-9005 --machine=cxl-x8 --machine=nvme-gen5 --assume=cxl.efficiency=50% --assume=nvme.latency=80us --assume=nvme.efficiency=90% $assume"
"$engram" size $memories $step --path=nvme,dram,pcie --scales=dram --assume=dram.pin_limit=1GB >out.txt 2>err.txt || fail "pinned scales: $(cat err.txt)"
says 'host: 5.72 GiB are to be pinned, 0.931 GiB can be' 'verdict .*does not fit'
"$engram" size $memories $step --path=nvme,pcie --scales=cxl --assume=cxl.capacity=4GB >out.txt 2>err.txt || fail "scales in cxl: $(cat err.txt)"
says 'host: 5.72 GiB of 3.73 GiB, does not fit' 'verdict .*does not fit'
"$engram" size $memories ${step/800us/800us,rate=1k/s} --path=cxl,dram,pcie --ranks=4 --host-devices=8 --years=4 --assume=cxl.byte_price=10USD/GB >out.txt 2>err.txt ||
    fail "tables in cxl: $(cat err.txt)"
# 202.76 GB and two buffers for each of two replicas of 128 x 24 x 264 B at 10 USD/GB over 4 years of 8766 h, 1000 tokens/s.
says '  cxl for the tables  *0.0161 to 0.0161 USD'
grep -q '^  dram  .*USD' out.txt && fail "bytes are paid twice: $(grep '^  dram  .*USD' out.txt)"
# Alone a rank fetches nothing, and gives the gradients of 65536 x 48 / 2 rows of 512 B to 511 replicas, 504 of them over 40 GB/s:
# 0.8053 GB in 511 of 512 parts, 19.8 ms. Five layers of 7.67 GB in a stage with a table of 101.4 GB, or two of them, of (306.8 + 202.8) / 8.
"$engram" size $host $assume --training=ranks=512,group=1,node=8,tokens=65536,unique=0.5,state=4B,gradient=2B,near=400GB/s,far=40GB/s,vision=20ms,backward=1ms,stages=8 \
    >out.txt 2>err.txt || fail "training alone: $(cat err.txt)"
says 'fetches 0 GB (0 % from other nodes) in 0 ms, returns 0 GB in 0 ms, exchanges 0.804 GB between replicas in 19.82 ms' \
    'hide all but 18.82 ms' '8 pipeline stages, if as many ranks share a layer as a table: the fullest holds 2.19 of the mean .*, 3.79 with'
# Start-up: 202.758 GB once from one drive of 13 GB/s, whichever devices of the host keep which part; a copy on each of two nodes is
# read once and populated twice, and 16 devices are on two hosts.
started() # words, options
{
    "$engram" size $drive --machine=h200 --machine=epyc-9005 $assume --model=v41-flash $traffic --layers=40 --unique=1 --hits=0 --assume=hbm.latency=600ns \
        --assume=hbm.efficiency=50% --assume=hbm.populate_rate=50GB/s --assume=dram.pin_rate=4GB/s --assume=dram.populate_rate=2GB/s $2 >out.txt 2>err.txt ||
        fail "start-up $2: $(cat err.txt)"
    says "$1"
}
started 'start-up: reading nvme in order 15.6 s beside populating 0.507 s, in all 15.6 s' "--path=hbm --shards=8 --copies=1 --host-devices=8"
# 24.6 GB of values for each of eight devices, and the 6.1 GB of scales that all of them have: the same file, read once.
started 'start-up: reading nvme in order 15.6 s beside populating 0.614 s, in all 15.6 s' "--path=hbm --shards=8 --copies=1 --host-devices=8 --scales=everywhere"
started 'start-up: reading nvme in order 7.8 s beside populating 0.253 s, in all 7.8 s' "--path=hbm --shards=16 --copies=1 --host-devices=8"
started 'start-up: reading nvme in order not known (--host-devices, which read one drive) beside .*, in all not known' "--path=hbm --shards=8 --copies=1"
started 'start-up: reading nvme in order 15.6 s beside populating 203 s, then pinning 101 s, in all 304 s' "--path=dram,pcie --shards=1 --copies=2"
# A file of which only random rows were measured is no drive to read from in order, and the drive comes first where both are known.
for file in latency=1us bandwidth=1GB/s; do
    started 'start-up: reading nvme in order 15.6 s beside populating 101 s' "--path=dram,pcie --shards=1 --copies=1 --assume=file.$file"
done
# A quarter less of the link, which 3072 x 3 x 128 B at 53.12 GB/s and 1.61 us go through: 31.2196 us, not 23.8172. Rates in proportion,
# at 1,000,000 tokens/s: 250,000 of 63 replicas of 4000 on 32 hosts, 750,000 of 66 of 11,378 on 33. Scales stay where they lie when
# the tier that holds them is moved: nothing but 27.5 ns of 110 is less.
figure() # expected, within, value of a stored point
{
    awk -v a="$1" -v b="$3" -v w="$2" 'BEGIN { exit !(b != "" && (a - b) ^ 2 <= w ^ 2) }' || fail "$3 is stored, not $1"
}
"$engram" size $host $assume ${traffic},rate=1k/s --traffic=prefill,tokens=4096,layer=9ms,rate=3k/s --ranks=4 --host-devices=8 --years=4 --db=moved.db >out.txt 2>err.txt ||
    fail "sensitivities: $(cat err.txt)"
says '^host  *0.104 GB  *0.0967 GiB  staging of raw rows, pinned'
moved="a ->> '\$.what' = 'sensitivity' AND a ->> '\$.factor' ="
figure 31.2196 0.0001 "$(of moved.db fetch_us "$moved 0.75 AND a ->> '\$.input' = 'pcie bandwidth'")"
figure 0.3108 0.0001 "$(of moved.db share "$moved 0.75 AND a ->> '\$.input' = 'pcie bandwidth'")"
figure -0.1865 0.0001 "$(of moved.db share "$moved 1.25 AND a ->> '\$.input' = 'pcie bandwidth'")"
figure 65 0 "$(of moved.db hosts "a ->> '\$.what' = 'hosts' AND a ->> '\$.traffic' = 'all together' AND a ->> '\$.target' BETWEEN 0.99e6 AND 1.01e6")"
"$engram" size --machine=h200 --machine=epyc-9005 ${drive/path=nvme/path=nvme,dram,pcie} $step $assume --scales=dram --assume=nvme.bandwidth=10TB/s \
    --assume=nvme.request_rate=1000M/s --db=scales.db >out.txt 2>err.txt || fail "moved scales: $(cat err.txt)"
base=$(grep -m1 -o '^layer 1: hidden: fetch [0-9.]*' out.txt | grep -o '[0-9.]*$')
figure "$base" 0.03 "$(of scales.db fetch_us "a ->> '\$.path' = 'nvme,dram,pcie' AND $moved 0.75 AND a ->> '\$.input' = 'dram latency'")"
# The wait in the figure of placements is the plan's, slowed fetches and scheduling included: 650 us of layers, 10 % slower
# beside them, carry half as much of these.
"$engram" size ${host/$traffic/} $assume --traffic=prefill,tokens=2048,layer=600us --interference=fetch=100%,compute=10% --scheduling=50us --hash=7us --db=placed.db \
    >out.txt 2>err.txt || fail "slowed fetches: $(cat err.txt)"
says 'layer 1: NOT hidden: fetch 356.'
stall=$(sed -n 's/^layer 1: .* stall \([0-9.]*\) us,.*/\1/p' out.txt)
placed="a ->> '\$.what' = 'hidden' AND a ->> '\$.tokens' = 2048 AND a ->> '\$.placement' = 1"
figure "$stall" 0.001 "$(of placed.db stall_us "$placed")"
figure "$(awk -v s="$stall" -v l=600 'BEGIN { printf "%.9f", s / (40 * l + s + 0.1 * (50 + l - 7)) }')" 2e-9 "$(of placed.db share "$placed")"
figure 650 0.001 "$(of placed.db window_us "$placed")"
# Hosts are paid whole: 8 of 8 devices at 2.5 to 7 USD/h for 100,000 tokens/s, though replicas are of 5; 16 that the tables ask
# for are 128. Without any price no cost is known. Links are of a device each.
hosts="--model=v41-flash --machine=h200 --machine=epyc-9005 $assume --layers=40 --unique=1 --hits=0 --copies=1 --host-devices=8 --years=4 --path=dram,pcie"
decode=--traffic=decode,streams=128,drafted=5,accepted=2.5,layer=600us,rate=100k/s
"$engram" size $hosts $decode --shards=1 --ranks=5 >out.txt 2>err.txt || fail "idle devices: $(cat err.txt)"
says 'hosts: 8 for .*on 40 of 64 devices' '  devices  *0.4444 to 1.2444 USD' '  without: power$'
# Power: 8 hosts whose memory draws 800 W, and 8 drives that draw 25, at 0.1 USD/kWh; the rent of devices pays for theirs. What is
# used and has none is named, what would not be counted is refused.
power="$hosts $decode --shards=1 --ranks=5 --assume=dram.power=0.8kW --power-price=0.1USD/kWh"
"$engram" size $power --db=power.db >out.txt 2>err.txt || fail "power: $(cat err.txt)"
says '  power  *0.00178 to 0.00178 USD' '  power: 0.1 USD/kWh$' 'dram.power = 800 W, assumed: the plan' '  in all  *0.4467 to 1.2510 USD'
grep -q '  without: ' out.txt && fail "something is not counted: $(grep without out.txt)"
grep -q 'rests on:.*dram.power' out.txt && fail "bytes and times rest on power"
"$engram" size $power --machine=nvme-gen5 --path=nvme,pcie --assume=nvme.latency=80us --assume=nvme.efficiency=90% >out.txt 2>err.txt || fail "power of a drive: $(cat err.txt)"
says '  without: nvme for the tables (no price is known; .*), power of nvme$'
"$engram" size $power --machine=nvme-gen5 --path=nvme,pcie --assume=nvme.latency=80us --assume=nvme.efficiency=90% --assume=nvme.power=25W >out.txt 2>err.txt ||
    fail "power of a drive: $(cat err.txt)"
says '  without: nvme for the tables (no price is known; .*)$' '  power  *0.00183 to 0.00183 USD'
# A link is of each of them: 64 of 100 USD over 4 years of 8766 h, 100,000 tokens/s.
"$engram" size $hosts $decode --shards=1 --ranks=5 --assume=pcie.unit_price=100USD >out.txt 2>err.txt || fail "a priced link: $(cat err.txt)"
says '  pcie  *0.000507 to 0.000507 USD'
"$engram" size $hosts $decode --shards=16 --ranks=4 >out.txt 2>err.txt || fail "hosts of tables: $(cat err.txt)"
says 'hosts: 16 for .*on 32 of 128 devices.; the tables' '  devices  *0.8889 to 2.4889 USD'
"$engram" size $hosts ${decode/100k/100M} --shards=1 --ranks=2 --readers=2 >out.txt 2>err.txt || fail "links: $(cat err.txt)"
says 'a host asks dram .*its 4 replicas share it' 'a host asks pcie .*of one; its 8 readers have one each'
"$engram" size --machine=gb200 --path=dram,c2c --assume=c2c.latency=1us --assume=c2c.efficiency=80% --assume=c2c.granule=64B --assume=dram.granule=64B --assume=dram.latency=1us --assume=dram.efficiency=50% \
    ${step/$traffic/$decode} --ranks=2 --host-devices=2 --years=4 >out.txt 2>err.txt || fail "no price: $(cat err.txt)"
says 'hosts, cost not known' 'without: devices (no price is known'
grep -q 'USD per million' out.txt && fail "a cost of nothing priced"
# A bought machine is its devices' price, not its memory's: 4 of 3999 USD over 3 years of 8766 h, 10,000 tokens/s.
"$engram" size --machine=gb10 --path=dram --assume=dram.latency=300ns --assume=dram.granule=64B --assume=dram.efficiency=60% ${step/$traffic/${decode/100k/10k}} \
    --ranks=4 --host-devices=1 --years=3 >out.txt 2>err.txt || fail "a bought machine: $(cat err.txt)"
says '  devices  *0.0169 to 0.0169 USD' '  without: power$' 'dram.device_price = 3999 USD'
grep -q 'dram for the tables' out.txt && fail "a machine's price is its memory's"
# Its power is not in that price: 4 x 140 W at 0.2 USD/kWh for 10,000 tokens/s.
"$engram" size --machine=gb10 --path=dram --assume=dram.latency=300ns --assume=dram.granule=64B --assume=dram.efficiency=60% ${step/$traffic/${decode/100k/10k}} \
    --ranks=4 --host-devices=1 --years=3 --assume=dram.power=140W --power-price=0.2USD/kWh >out.txt 2>err.txt || fail "a machine's power: $(cat err.txt)"
says '  power  *0.00311 to 0.00311 USD' '  in all  *0.0200 to 0.0200 USD'
# Every input is told, whether it was given or not; what slower layers add besides waiting; two kinds of equally many streams.
"$engram" size $host $assume --traffic=decode,streams=128,drafted=1,accepted=1.5,layer=90us,rate=1k/s --hash=5us --issue=2us --slo=40ms --ranks=4 \
    --host-devices=8 --context=1000000 --kv=fp8 --years=4 --reserve=graphs=22GiB --interference=fetch=10%,compute=10% --db=inputs.db >out.txt 2>err.txt ||
    fail "inputs: $(cat err.txt)"
says 'machine h200+epyc-9005, model v41-flash' '  hash: 5 us' '  issue: 2 us' '  scheduling: not given, counted as nothing' '  tables: 1 shard, 1 copy on each' \
    '  a replica: 4 devices' '  a host: 8 devices' '  context: 1000000 tokens, kept in fp8' '  reserve: graphs, 23.6223 GB' '  what is bought is used for 4 years' \
    'traffic decode 128: .*, a mean step of 40 ms asked for' 'traffic decode 128 #2: .*, 1 drafted and 1.5 accepted a stream, 1000 tokens/s wanted, a mean' \
    'interference through dram,pcie: fetches 10 % slower beside layers, layers 10 %, as given' 'verdict decode 128 #2 through dram,pcie'
awk '/^layer / { sub(/.*stall /, ""); waits += $1 } /^step:/ { if ($0 !~ waits " us of waiting, ") bad = 1; sub(/.*waiting, /, ""); if ($1 <= 0) bad = 1; n++; waits = 0 }
    END { exit bad || n != 2 }' out.txt || fail "what is added is not waiting and slower layers: $(grep '^step' out.txt)"
[ "$(sqlite3 inputs.db "SELECT count(DISTINCT value) FROM axis_values WHERE axis = 'traffic'")" = 2 ] || fail "two kinds of traffic are not told apart"
# Scales in memory: 3072 rows are as many pages at 2.5 M/s, not twice as many.
"$engram" size $drive --machine=epyc-9005 --assume=dram.efficiency=50% --scales=dram $step >out.txt 2>err.txt || fail "scales: $(cat err.txt)"
says 'scales: all of them in dram' 'layer 1: NOT hidden: fetch 1308.8 us' '^host  *3.072 GB .*table scales (layer 14), pinned' \
    '^drive  *196.614 GB .*in all' '    dram: 3072 requests' 'rests on: .*dram.bandwidth'
# An adapter beside one that a machine has: 3072 rows are two reads each, values and scales, at 45 M/s and 3 us.
"$engram" size --machine=rdma-400g --machine=h200 --machine=epyc-9005 --path=dram,rdma --assume=dram.efficiency=50% --assume=rdma.latency=3us $step \
    >out.txt 2>err.txt || fail "an adapter: $(cat err.txt)"
says 'rdma: no granule is known, no byte more than asked for' '    rdma: 6144 requests, .* request rate 136.533 us (binds)'
"$engram" size --machine=h200 --machine=epyc-9005 --path=dram,nic --assume=dram.efficiency=50% --assume=nic.latency=3us --assume=nic.efficiency=90% $step \
    >out.txt 2>err.txt || fail "a machine's adapter: $(cat err.txt)"
says '    nic: 6144 requests, .* request rate 136.533 us (binds)'
# A shared memory holds what the device would.
"$engram" size --machine=gb10 --path=dram --assume=dram.latency=300ns --assume=dram.efficiency=60% --assume=dram.granule=64B \
    ${step/shards=1/shards=4} --ranks=4 >out.txt 2>err.txt || fail "gb10: exit $?: $(cat err.txt)"
says '^host .*routed experts' 'through dram: does not fit'

expect() # exit code, words on stderr, options
{
    "$engram" size $3 >out.txt 2>err.txt
    code=$?
    [ $code = "$1" ] || fail "size $3: exit $code, not $1"
    grep -q -- "$2" err.txt || fail "size $3: $(cat err.txt), not \"$2\""
    [ "$(wc -l <err.txt)" = 1 ] || fail "size $3: not one line"
    [ -s out.txt ] && fail "size $3: printed a plan"
}
expect 1 'dram.efficiency=50%' "$host"
# What is not known of one machine does not make it faster than another.
expect 1 'no source gives the granule of tier pcie; assume one, such as --assume=pcie.granule=128B' "${host/h200/mi300x} $assume"
expect 1 'no source gives the request_rate of tier nic' "--machine=gb10 --path=dram,nic --assume=dram.granule=64B $step"
expect 1 '--machine: no machine preset is called "h20", did you mean "h200"' "--machine=h20 --path=hbm $step"
expect 1 '--assume: "pcie": not tier.field=value' "$host $assume --assume=pcie"
expect 1 '--assume: "pcie.speed=1GB/s": a tier has no field' "$host $assume --assume=pcie.speed=1GB/s"
expect 1 '--model: .*no preset is called "v41_flash"' "${host/v41-flash/v41_flash} $assume"
expect 1 'machine is needed' "--path=hbm $step"
expect 1 'path is needed' "--machine=h200 $step"
expect 1 'names no tier' "${host/dram,pcie/} $assume"
expect 1 'no table lies in pcie' "--machine=h200 --path=pcie $step"
expect 1 'path=dram: machine h200 has no tier "dram"' "--machine=h200 --path=dram $step"
expect 1 'has a tier hbm already' "--machine=h200 --machine=h100 --path=hbm $step"
for option in traffic layers unique hits shards copies; do
    expect 1 "$option is needed" "$(echo "$host $assume" | sed "s/--$option=[^ ]*//")"
done
expect 1 'layer=TIME is needed' "$host $assume --traffic=decode,streams=4"
expect 1 'streams=N is needed' "$host $assume --traffic=decode,layer=1ms"
expect 1 'tokens=N of a step' "$host $assume --traffic=prefill,layer=1ms"
expect 1 'accepted=N is needed' "$host $assume --traffic=decode,streams=4,drafted=5,layer=1ms"
expect 1 'accepted=7 is not 1 to 6' "$host $assume --traffic=decode,streams=4,drafted=5,accepted=7,layer=1ms"
expect 1 'did you mean "streams"' "$host $assume --traffic=decode,stream=4,layer=1ms"
expect 1 'decode or prefill' "$host $assume --traffic=chat,streams=4"
expect 1 'whole number' "$host $assume --traffic=decode,streams=1.5,layer=1ms"
expect 1 'no unit' "${host/800us/800} $assume"
expect 1 'not above 0' "${host/800us/0us} $assume"
expect 1 '"GB", one of' "${host/800us/800GB} $assume"
expect 1 'no unit' "$host --assume=pcie.latency=1.5"
expect 1 '-1us' "$host --assume=pcie.latency=-1us"
expect 1 'not above 0' "$host $assume --assume=dram.bandwidth=0GB/s"
expect 1 '"10": 10 is not a share up to 1; write 10% or 1000%' "$host $assume --interference=fetch=10,compute=2%"
expect 1 'interference: compute=SHARE is needed, 0 for none' "$host $assume --interference=fetch=10%"
expect 1 'fetch: "1.2": ' "$host $assume --interference=fetch=1.2,compute=0"
expect 1 'traffic: accepted: "250%": unit "%", one of 1' "$host $assume --traffic=decode,streams=4,drafted=5,accepted=250%,layer=1ms"
expect 1 'traffic: rate: "100": no unit, one of /s' "$host $assume --traffic=decode,streams=4,layer=1ms,rate=100"
expect 1 'slo: "25": no unit, one of ns us ms s' "$host $assume --slo=25"
expect 1 'slo: decode: "25": no unit' "$host $assume --slo=decode=25"
expect 1 'reserve=graphs=22: "22": no unit, one of B kB' "$host $assume --reserve=graphs=22"
expect 1 'hash: "3": no unit' "$host $assume --hash=3"
expect 1 'cache: "4": no unit' "$host $assume --cache=4@dram --corpus=prose --policy=lru"
expect 1 'cache=4GB: in which tier' "$host $assume --cache=4GB --corpus=prose --policy=lru"
expect 1 'has no tier "drm"' "$host $assume --cache=4GB@drm"
expect 1 'nothing lies in pcie' "$host $assume --cache=4GB@pcie"
expect 1 'all rows lie there already' "$host $assume --cache=4GB@dram"
expect 1 'does not pass hbm' "$host $assume --cache=4GB@hbm"
expect 1 'bytes of dram and cxl are not told apart' "$memories $step --path=cxl,dram --cache=4GB@dram"
expect 1 'scales=dram: bytes of dram and cxl are not told apart, a plan counts one memory' "$memories $step --path=cxl,pcie --scales=dram"
expect 1 'scales=nvme: bytes of nvme and file are not told apart, a plan counts one drive' "$memories $step --assume=file.latency=1us --path=file,dram --scales=nvme"
expect 1 'bytes of dram and cxl are not told apart' "$memories ${step/hits=0/hits=0.5} --path=nvme,dram,pcie --scales=cxl --cache=4GB@dram"
expect 1 'hits=0.5: held where' "${host/hits=0/hits=0.5} $assume"
expect 1 'training: state: "4": no unit' "$host $assume --training=ranks=8,group=4,node=8,tokens=1,unique=1,state=4,gradient=2B,near=1GB/s,far=1GB/s,stages=2"
expect 1 'training: unique: "50": 50 is not a share' "$host $assume --training=ranks=8,group=4,node=8,tokens=1,unique=50,state=4B,gradient=2B,near=1GB/s,far=1GB/s,stages=2"
expect 1 '"" is not streams' "$host $assume --traffic=decode,,streams=4,layer=1ms"
expect 1 'path=dram,,pcie: machine .* has no tier ""' "$host $assume --path=dram,,pcie"
expect 1 'has no tier ""' "$host $assume --path=dram,"
expect 1 '"" is not streams' "$host $assume --traffic=decode,streams=4,layer=1ms,,rate=1k/s"
expect 1 '"" is not streams' "$host $assume --traffic=decode,streams=4,layer=1ms,"
expect 1 'a scheme and one link' "${shared/$traffic/} --exchange=all-gather,nvlink,"
expect 1 '--assume: "pcie.latency=2us": pcie.latency is assumed already' "$host $assume --assume=pcie.latency=2us"
expect 1 'no path passes a tier "drm"; did you mean "dram"?' "$host $assume --assume=drm.bandwidth=1GB/s"
expect 1 'slo=prefill=25ms: no --traffic is prefill' "$host $assume --slo=prefill=25ms"
expect 1 'slo=decode=1s,prefill=2s: no --traffic is prefill' "$host $assume --slo=decode=1s,prefill=2s"
expect 1 'years: what is bought is for hosts' "$host $assume --years=4"
expect 1 'years=1e+18: nothing is used for more than 100' "$host $assume --ranks=4 --host-devices=8 --years=1e18"
expect 1 'power-price: "0.1": no unit, one of USD/kWh' "${power/=0.1USD\/kWh/=0.1}"
expect 1 'power-price is given twice' "$power --power-price=0.1USD/kWh"
power="$hosts $decode --shards=1 --ranks=5"
expect 1 'power-price: "0USD/kWh": 0 is not above 0' "$power --assume=dram.power=800W --power-price=0USD/kWh"
expect 1 'power-price: "-1USD/kWh": -1 is not above 0' "$power --assume=dram.power=800W --power-price=-1USD/kWh"
expect 1 'unit "USD/h", one of USD/kWh' "$power --assume=dram.power=800W --power-price=0.1USD/h"
expect 1 'power-price: of what? .*--assume=dram.power=700W' "$power --power-price=0.1USD/kWh"
expect 1 'assume: dram.power at which price? --power-price=0.1USD/kWh' "$power --assume=dram.power=800W"
expect 1 '"800": no unit, one of W kW' "$power --assume=dram.power=800 --power-price=0.1USD/kWh"
expect 1 'dram.power=0W": "0W": 0 is not above 0' "$power --assume=dram.power=0W --power-price=0.1USD/kWh"
expect 1 'dram.power is assumed already' "$power --assume=dram.power=1W --assume=dram.power=2W --power-price=0.1USD/kWh"
expect 1 'hbm.power is paid with the rent of the device' "$power --assume=hbm.power=700W --power-price=0.1USD/kWh"
expect 1 'no path passes a tier "host"' "$power --assume=host.power=500W --power-price=0.1USD/kWh"
expect 1 'power-price: power is of hosts' "$host $assume --assume=dram.power=800W --power-price=0.1USD/kWh"
expect 1 'efficiency is above 1' "$host --assume=dram.efficiency=130%"
expect 1 'pin_limit is above capacity' "$host $assume --assume=dram.pin_limit=1TB"
expect 1 'layers=10: v41-flash has 40; shapes of another' "${host/layers=40/layers=10} $assume"
expect 1 '--ranks: .*1000 ranks cannot share tensors of at most 384 parts' "$host $assume --ranks=1000"
expect 1 'not a share' "${host/unique=1/unique=2} $assume"
expect 1 'percentile' "$host $assume --slo=p99=25ms"
expect 1 'percentile' "$host $assume --slo=99%:25ms"
expect 1 'host-devices are needed' "$host $assume --traffic=decode,streams=4,layer=1ms,rate=1k/s"
expect 1 'shards=2000000000: a table has 384006168 rows' "${host/shards=1/shards=2000000000} $assume"
expect 1 'policy=lru: needs --cache, and --corpus' "$host $assume --policy=lru"
expect 1 'policy=lru: needs --cache, and --corpus' "--machine=h200 --machine=epyc-9005 --path=dram,hbm $step --cache=4GB@hbm --policy=lru"
expect 1 'gives what --unique' "$host $assume --corpus=prose"
expect 1 'group must divide' "$host $assume --training=ranks=10,group=4,node=8,tokens=1,unique=1,state=4B,gradient=2B,near=1GB/s,far=1GB/s,stages=2"
expect 1 'far=... is needed' "$host $assume --training=ranks=8,group=4,node=8,tokens=1,unique=1,state=4B,gradient=2B,near=1GB/s,stages=2"
expect 1 'is none of all-reduce' "${shared/$traffic/} --exchange=ring,nvlink"
expect 1 'a scheme and one link' "${shared/$traffic/} --exchange=all-gather"
expect 1 'exchange: machine .* has no tier "nvlnk"' "${shared/$traffic/} --exchange=all-gather,nvlnk"
expect 1 'nothing is shared' "$host $assume --exchange=all-gather,nvlink"
expect 1 'exchange: nothing is shared' "$host $assume --exchange=peer-read,nvlink"
expect 1 'a scheme and one link: peer-read,nvlink' "$peers"
expect 1 'is none of all-reduce, all-gather, all-to-all, heads, peer-read' "${peers/peer-read/peers},nvlink"
expect 1 'no source gives the granule of tier nvlink; assume one' "$peers,nvlink $link"
expect 1 'latency of tier nvlink' "$peers,nvlink --assume=nvlink.granule=128B"
expect 1 'rows of --path=hbm come through hbm already' "$peers,hbm"
expect 1 'a tier more than the 4 that --path=' "--machine=h200 --machine=epyc-9005 --machine=nvme-gen5 --machine=cxl-x8 $assume --path=nvme,cxl,dram,pcie ${step/shards=1/shards=8} --exchange=peer-read,nvlink"
four="--machine=h200 --machine=epyc-9005 --machine=nvme-gen5 --machine=cxl-x8 $assume ${step/shards=1/shards=8} --scales=cxl"
expect 1 'scales=cxl: a tier more than the 4 that' "$four --path=nvme,dram,pcie --exchange=peer-read,nvlink"
expect 1 'scales=cxl: a tier more than the 4 that' "$four --path=nvme,dram,pcie,hbm"
expect 1 'shards=8, with --path=hbm each reads a part of a step; a replica is of 4 devices (--ranks)' "$peers,nvlink $link --ranks=4 --host-devices=8"
expect 1 'with --path=dram each .*; a replica is of 1 host (--ranks over --host-devices)' "--machine=h200 --machine=epyc-9005 ${step/shards=1/shards=8} --path=dram --exchange=all-gather,nic --ranks=8 --host-devices=8"
expect 1 'leave out --readers' "$peers,nvlink $link --readers=2"
expect 1 'scales=everywhere: nothing is shared with --shards=1' "$host $assume --scales=everywhere"
expect 1 'scales=everywhere: --exchange=heads sends decoded rows' "${shared/$traffic/} --exchange=heads,nvlink $link --scales=everywhere"
expect 1 'scales=everywhere: rows of engram-demo have none' "${host/v41-flash/engram-demo} $assume --scales=everywhere"
expect 1 'has no tier "everwhere"' "${shared/$traffic/} --scales=everwhere"
expect 1 'scales' "${shared/$traffic/} --scales=everywhere --scales=everywhere"
expect 1 'readers=8: a replica is of 4 devices' "$host $assume --ranks=4 --readers=8"
expect 1 'leave out --readers' "${shared/$traffic/} --exchange=all-gather,nvlink --readers=2"
expect 1 'latency of tier nvlink' "${shared/$traffic/} --exchange=all-gather,nvlink"
expect 1 'more than 1e+18 B' "$host $assume --reserve=x=1e30GB"
expect 1 'more than 1e+18 B' "$host $assume --assume=dram.capacity=1e30GB"
expect 1 'context: "1e30": is more than 1e+18' "$host $assume --context=1e30"
expect 1 'no whole number' "$host $assume --context=1e16"
expect 1 'layer: "1e305s": is more than 1e+18 s' "${host/800us/1e305s} $assume"
expect 1 'layer: "1e-320us": is less than 1e-18 s' "${host/800us/1e-320us} $assume"
expect 1 'is more than 1e+18 B/s' "$host $assume --assume=pcie.bandwidth=1e305GB/s"
expect 1 'is more than 1e+18 s' "$host $assume --assume=pcie.latency=1e300s"
expect 1 'is less than 1e-18 s' "$host $assume --hash=1e-300s"
expect 1 'no whole number' "$host $assume --context=1.5"
expect 1 'kv: model v41-flash: caches are kept in one of fp4 (890 B a token), fp8 (1650 B a token)' "$host $assume --context=1000"
expect 1 'not in bf16' "$host $assume --context=1000 --kv=bf16"
expect 1 'kv: of how much context' "$host $assume --kv=fp8"
expect 1 'granule is 0.5, not a whole' "$host $assume --assume=dram.granule=0.5B"
expect 1 'granule is 1e+18, not a whole' "$host $assume --assume=dram.granule=1e18B"
expect 1 'outstanding is 0.3, not a whole' "$host $assume --assume=dram.outstanding=0.3"
expect 1 'names dram twice' "$host $assume --path=dram,dram"
expect 1 'layer is given twice' "$host $assume --traffic=decode,streams=4,layer=1ms,layer=2ms"
expect 1 'they lie there already' "$host $assume --scales=dram"
expect 1 'nothing lies there' "$host $assume --scales=pcie"
expect 1 'rows of engram-demo have none' "${host/v41-flash/engram-demo} $assume --scales=hbm"
expect 1 'model is needed: an Engram preset' "${host/--model=v41-flash/} $assume"
expect 1 'path=dram,pcie: is given twice' "$host $assume --path=dram,pcie"
expect 1 'layer=800us: is given twice' "$host $assume $traffic"
expect 1 'reserve=graphs: two things of one place' "$host $assume --reserve=graphs=1GB --reserve=graphs=2GB"
expect 1 'reserve=routers: two things of one place' "$host $assume --ranks=4 --reserve=routers=1GB"
expect 6 'no such file or model' "$host $assume --weights=none.json"
sed 's/"source": "[^"]*"/"source": ""/' "$source/sim/machine/presets/rdma-400g.json" >bare.json
expect 6 'bandwidth: has no source' "--machine=./bare.json --path=rdma $step"
sed 's/"value": 45, "unit": "M\/s"/"value": 4500000, "unit": "M\/s"/; s/"request_rate"/"granule": {"value": 64, "unit": "B", "kind": "spec", "date": "2026-01-01", "source": "x"}, "request_rate"/' \
    "$source/sim/machine/presets/rdma-400g.json" >fast.json
expect 6 'its bandwidth is' "--machine=./fast.json --path=rdma $step"
head -c 200 "$source/sim/machine/presets/h200.json" >cut.json
expect 6 'cut.json' "--machine=cut.json --path=hbm $step"
expect 6 'none.json: no such file' "--machine=none.json --path=hbm $step"
sed 's/"dims": \[384, 5120\]/"dims": [384, 0]/' "$source/sim/planner/models/v41-flash.json" >flat.json
expect 6 'flat.json: routers' "$host $assume --weights=./flat.json"
sed 's/"split": true/"split": "yes"/' "$source/sim/planner/models/v41-flash.json" >yes.json
expect 6 'yes.json: routed experts: split is neither true nor false' "$host $assume --weights=./yes.json"
sed 's/475.24/900/' "$source/sim/planner/models/v41-flash.json" >large.json
expect 6 'large.json: checkpoint: is 900 GiB, tensors and tables are 47' "$host $assume --weights=./large.json"
sed 's/"layers": 40/"layers": 10/' "$source/sim/planner/models/v41-flash.json" >short.json
expect 1 'layer 14 of 10' "${host/layers=40/layers=10} $assume --weights=./short.json"

# Reuse from a token stream: one token again and again reads the same rows, whatever the cache is beyond a key.
for i in $(seq 50); do printf '[%s5]\n' "$(printf '5,%.0s' $(seq 99))"; done >same.jsonl
"$engram" stream import same.jsonl --data=data --name=same --vocab=97 >out.txt 2>&1 || fail "stream import: $(cat out.txt)"
tiny="--model=tiny --machine=epyc-9005 --path=dram --assume=dram.efficiency=50% --layers=8 --shards=1 --copies=1 --data=data"
"$engram" size $tiny --traffic=prefill,tokens=1000,layer=1ms --corpus=same >out.txt 2>err.txt || fail "a corpus: $(cat err.txt)"
says 'unique 0.001, hits 0: corpus same (imported, 5000 tokens), no cache' 'no shapes of tiny are known'
tiny_drive="--machine=nvme-gen5 --path=nvme,dram --assume=nvme.latency=80us --assume=nvme.efficiency=90%"
"$engram" size ${tiny/--path=dram/} --traffic=decode,streams=4,layer=1ms --corpus=same --cache=1MB@dram --policy=lru $tiny_drive --db=corpus.db >out.txt 2>err.txt ||
    fail "a cache: $(cat err.txt)"
# One row of four look-ups is left by deduplication; the cache lacks it at most a few times in 1250 steps.
says 'unique 0.25, hits 0.99.*cache of 0.001 GB in dram, lru: 0.999[0-9]* of all look-ups'
sed -n 's/.* hits \([0-9.]*\): .* lru: \([0-9.]*\) of all.*/\1 \2/p' out.txt |
    awk '{ n++; d = $1 - (1 - (1 - $2) / 0.25) } END { exit !(n == 1 && d ^ 2 < 0.0003 ^ 2) }' || fail "hits are not of the rows that deduplication leaves"
[ "$(sqlite3 corpus.db "SELECT count(*) FROM points WHERE axes_json ->> '$.what' IN ('hits', 'unique', 'length', 'streams', 'heaps')
    AND provenance LIKE 'corpus same (imported, 5%'")" -gt 40 ] || fail "a rate does not name its corpus"
# Counts are kept beside the stream: found again, also by another plan, and not when they are damaged.
tiny_same="--traffic=prefill,tokens=1000,layer=1ms --corpus=same"
"$engram" size $tiny $tiny_same >again.txt 2>err.txt || fail "a corpus again: $(cat err.txt)"
grep -q 'counts of same: 1 were kept, .* s of counting saved; 0 counted now' err.txt || fail "counted again: $(cat err.txt)"
head -c 300 data/counts/same-tiny.json >cut.txt && cp cut.txt data/counts/same-tiny.json
"$engram" size $tiny $tiny_same >recounted.txt 2>err.txt || fail "cut counts: $(cat err.txt)"
grep -q 'data/counts/same-tiny.json are not used, counted again: damaged' err.txt || fail "cut counts are not told: $(cat err.txt)"
cmp -s again.txt recounted.txt || fail "kept counts give another plan"
"$engram" size $tiny $tiny_same >again.txt 2>err.txt || fail "a corpus again: $(cat err.txt)"
grep -q 'same: 1 were kept' err.txt || fail "recounted ones are not kept: $(cat err.txt)"
rm -r data/counts && touch data/counts
"$engram" size $tiny $tiny_same >again.txt 2>err.txt || fail "a folder that takes none: $(cat err.txt)"
grep -q 'counts of same are not kept: ' err.txt && cmp -s again.txt recounted.txt || fail "a folder that takes none: $(cat err.txt)"
rm data/counts
# Rejected drafts are other tokens of a text: of this one, the same.
"$engram" size $tiny --traffic=decode,streams=4,drafted=3,accepted=2,layer=1ms --corpus=same >out.txt 2>err.txt || fail "drafts: $(cat err.txt)"
says 'drafts accepted with 0.544 each, others assumed other tokens of it'
"$engram" stream import same.jsonl --data=data --name=also --vocab=97 >out.txt 2>&1 || fail "stream import: $(cat out.txt)"
expect 1 'corpus=also: a plan takes the first' "$tiny --traffic=prefill,tokens=10,layer=1ms --corpus=same --corpus=also"
expect 1 'more than 256 drafted' "$tiny --traffic=decode,streams=4,drafted=300,accepted=2,layer=1ms --corpus=same"
expect 6 'same' "$tiny --traffic=prefill,tokens=10,layer=1ms --corpus=sane"
expect 1 'corpus=same: is given twice' "$tiny --traffic=prefill,tokens=10,layer=1ms --corpus=same --corpus=same"
expect 1 'holds no key' "${tiny/--path=dram/} $tiny_drive --traffic=prefill,tokens=10,layer=1ms --corpus=same --cache=1B@dram --policy=lru"
expect 1 'needs --policy' "${tiny/--path=dram/} $tiny_drive --traffic=prefill,tokens=10,layer=1ms --corpus=same --cache=1MB@dram"
expect 1 'tokens, a step takes' "$tiny --traffic=prefill,tokens=100000,layer=1ms --corpus=same"

# Synthetic hits, by hand: with q_i = i^-0.9 / sum and the T that solves sum(1 - exp(-q_i T)) = 5 of 15 rows of a head, a draw
# hits with sum(q_i (1 - exp(-q_i T))) = 0.51086; of three quarters that are left, 1 - (1 - 0.51086) / 0.75 = 0.3478.
# A path of measured values alone does not make them measured.
zipf="--model=tiny --layers=8 --shards=1 --copies=1 --path=nvme,dram --traffic=decode,streams=4,layer=1ms --unique=0.75"
measured() { printf '{"value": %s, "unit": "%s", "kind": "measured", "date": "2026-11-30", "source": "x"}' "$1" "$2"; }
tier() { # bandwidth, granule, latency
    printf '{"capacity": %s, "bandwidth": %s, "granule": %s, "latency": %s, "efficiency": %s}' "$(measured 100 GB)" "$(measured "$1" GB/s)" \
        "$(measured "$2" B)" "$(measured "$3" us)" "$(measured 90 %)"
}
printf '{"summary": "all measured", "tiers": {"nvme": %s, "dram": %s}}\n' "$(tier 10 4096 80)" "$(tier 100 64 0.1)" >measured.json
"$engram" size $zipf --machine=./measured.json --cache=1400B@dram --zipf=0.9 --db=zipf.db >out.txt 2>err.txt || fail "synthetic hits: $(cat err.txt)"
says 'hits 0.3478: --unique; hits are synthetic: Zipf 0.9, Che; cache of .* in dram, 5 of the 15 rows of a head: 0.5109 of all look-ups' \
    '34.78 % of them from the cache in dram (synthetic: Zipf 0.9, Che)' '  extrapolated: every value of the path was measured, hits are synthetic: Zipf 0.9, Che'
[ "$(sqlite3 zipf.db "SELECT count(*) > 0 AND sum(provenance NOT LIKE '%extrapolated: %hits are synthetic: Zipf 0.9, Che%') = 0 FROM points WHERE axes_json ->> '$.what' IN ('plan', 'gather')")" = 1 ] ||
    fail "points of synthetic hits are not told"
"$engram" size $zipf --machine=./measured.json --cache=1GB@dram --zipf=0.9 >out.txt 2>err.txt || fail "a cache of all rows: $(cat err.txt)"
says 'hits 1: .*15 of the 15 rows'
zipf="$zipf --machine=./measured.json"
expect 1 'zipf=0.9: of which cache? --cache=BYTES@TIER' "$zipf --zipf=0.9"
expect 1 'zipf: --hits tells already' "$zipf --cache=1MB@dram --zipf=0.9 --hits=0.5"
expect 1 'zipf: --corpus tells already' "${zipf/--unique=0.75/} --data=data --cache=1MB@dram --policy=lru --zipf=0.9 --corpus=same"
expect 1 'unique is needed' "${zipf/--unique=0.75/} --cache=1MB@dram --zipf=0.9"
expect 1 'zipf: "0": 0 is not above 0' "$zipf --cache=1MB@dram --zipf=0"
expect 1 'zipf: "-1": -1 is not above 0' "$zipf --cache=1MB@dram --zipf=-1"
expect 1 'zipf: "nan": nan is not above 0' "$zipf --cache=1MB@dram --zipf=nan"
expect 1 'zipf=5.01: the exponent is above 5' "$zipf --cache=1MB@dram --zipf=5.01"
expect 1 'zipf: .steep. is no number' "$zipf --cache=1MB@dram --zipf=steep"
expect 1 'policy=lru: needs --cache, and --corpus' "$zipf --cache=1MB@dram --zipf=0.9 --policy=lru"
expect 1 'cache: does not hold a row of each head, 264 B' "$zipf --cache=200B@dram --zipf=0.9"

# Stored points are simulated, name what they rest on, and come once.
"$engram" size $host $assume --ranks=4 --host-devices=8 --db=plan.db >out.txt 2>err.txt || fail "storing: $(cat err.txt)"
"$engram" size $host $assume --ranks=4 --host-devices=8 --db=plan.db >out.txt 2>err.txt || fail "storing again: $(cat err.txt)"
grep -q 'points were there' err.txt || fail "a plan was stored twice"
query() { sqlite3 plan.db "$1"; }
[ "$(query "SELECT count(*) FROM runs")" = 1 ] || fail "two runs"
[ "$(query "SELECT count(*) FROM points WHERE kind NOT IN ('simulated', 'published')")" = 0 ] || fail "a kind"
[ "$(query "SELECT count(*) FROM points WHERE length(provenance) < 8")" = 0 ] || fail "a point rests on nothing"
[ "$(query "SELECT count(DISTINCT a.value) > 10 FROM axis_values a WHERE a.axis = 'what'")" = 1 ] || fail "few figures"
# Requests under way for 90 % of a rate, by hand: half of 614.4 GB/s in lines of 64 B at 110 ns, 83 % of 64 GB/s in 128 B at 1.5 us.
value() { query "SELECT printf('%.4g', median) FROM v_summary WHERE metric = 'value' AND axes_json ->> '$.what' = '$1' AND axes_json ->> '$.$2' = '$3' ${4:-} LIMIT 1"; }
[ "$(value knee tier dram) $(value knee tier pcie)" = "476 561" ] || fail "under way: $(value knee tier dram) $(value knee tier pcie)"
# Anchors: 147.894 GiB on each of two ranks, beside a buffer of 8 or 32 GiB and graphs of 22.
ours() { value anchor anchor "$1" "AND axes_json ->> '$.side' = 'ours'"; }
for anchor in 'weights of a rank of 8=44.52' 'weights of a rank of 2=147.9' 'left for context, 2 ranks of MI300X=-5.094' \
    'left for context, 2 ranks of GB200=-16.86' 'left for context, 2 ranks of GB300=75.11' 'a token of context, fp4=890' 'a token of context, fp8=1650'; do
    [ "$(ours "${anchor%=*}")" = "${anchor#*=}" ] || fail "an anchor: ${anchor%=*} is $(ours "${anchor%=*}"), not ${anchor#*=}"
done
# The paper's: 512 tokens of 16 rows of 320 B take 50.96 us, its layers 1575 and 2252.
for share in '4B=3.2' '8B=2.3'; do
    query "SELECT provenance FROM points WHERE axes_json ->> '$.anchor' = 'cost of offload, ${share%=*}' AND kind = 'simulated'" |
        grep -q "takes ${share#*=} % of its window, so" || fail "the paper's ${share%=*} waits otherwise"
done
[ "$(query "SELECT count(*) FROM points WHERE kind = 'published' AND provenance NOT LIKE 'arXiv%' AND provenance NOT LIKE 'InferenceX%' AND provenance NOT LIKE 'MiaAI-Lab%'")" = 0 ] ||
    fail "a published point without a source"
ENG_DB_MAX_PAGES=20 "$engram" size $tiny $tiny_same --db=small.db >out.txt 2>err.txt
[ $? = 7 ] || fail "a full disk: exit is not 7: $(cat err.txt)"
"$engram" size $tiny $tiny_same --db=corpus.db >out.txt 2>err.txt
grep -q 'same: [1-9][0-9] were kept, .*; 0 counted now' err.txt || fail "counts are lost with the database: $(cat err.txt)"
ENG_DB_MAX_PAGES=60 "$engram" size $host $assume --db=full.db >out.txt 2>err.txt
[ $? = 7 ] || fail "a full disk: exit is not 7: $(cat err.txt)"
[ "$(sqlite3 full.db "SELECT count(*) FROM points" 2>/dev/null || echo 0)" = 0 ] || fail "half a plan was stored"
exit $failed
