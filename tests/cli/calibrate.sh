#!/usr/bin/env bash
# label: fast
# engram calibrate from the outside: what it says before it measures, and mistakes that it names then. What it makes
# of measurements is tested on recordings (test_recordings) and by calibrate_live. Arguments: the program, the source
# folder.
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

"$engram" calibrate --dry-run --validate --db=none.db 2>err.txt || fail "a dry run: exit $?: $(cat err.txt)"
grep -Eq '[0-9]+ points, about [0-9]+ s' err.txt || fail "no estimate: $(cat err.txt)"
[ -e none.db ] && fail "a dry run made a database"
"$engram" calibrate --dry-run --quick --db=none.db 2>quick.txt || fail "a quick dry run: exit $?"
seconds() { sed -n 's/.*about \([0-9]*\) s.*/\1/p' "$1"; }
[ "$(seconds quick.txt)" -lt "$(seconds err.txt)" ] || fail "quick is not quicker: $(cat quick.txt)"

expect() # exit code, words on stderr, options
{
    "$engram" calibrate $3 --db=none.db >out.txt 2>err.txt
    code=$?
    [ $code = "$1" ] || fail "calibrate $3: exit $code, not $1"
    grep -q -- "$2" err.txt || fail "calibrate $3: $(cat err.txt), not \"$2\""
    [ -s out.txt ] && fail "calibrate $3: printed something"
    [ -e none.db ] && fail "calibrate $3: measured something"
}
recording=$(ls "$source"/tests/data/recordings/*.csv | head -1)
expect 6 'none.csv: no such file' '--validate --fit=none.csv'
expect 1 'is for --validate' "--fit=$recording"
head -c 3000 "$recording" >cut.csv
expect 6 'cut.csv:[0-9]*: ' '--validate --fit=cut.csv'
sed '2d' "$recording" >undated.csv
expect 6 'no date' '--validate --fit=undated.csv'
expect 1 'did you mean' '--validat'
# What cannot be written is told before anything is measured.
touch blocked
expect_after_plan() # the estimate comes first
{
    "$engram" calibrate $3 --db=none.db >out.txt 2>err.txt
    code=$?
    [ $code = "$1" ] || fail "calibrate $3: exit $code, not $1"
    tail -1 err.txt | grep -q -- "$2" || fail "calibrate $3: $(cat err.txt), not \"$2\""
    [ -e none.db ] && fail "calibrate $3: measured something"
}
expect_after_plan 7 'out: blocked' '--out=blocked/m.json'
expect_after_plan 7 'record: blocked' '--out=m.json --validate --record=blocked/r.csv'
expect_after_plan 1 'out: names no file' '--out='
ls m.json* 2>/dev/null && fail "a file was left"

# A plan says where it goes beyond what a machine file was measured with.
measured='"kind": "measured", "date": "2026-11-30", "source": "a point of a test"'
cat >machine.json <<END
{"summary": "a test", "tiers": {"dram": {"bandwidth": {"value": 40, "unit": "GB/s", $measured},
    "latency": {"value": 100, "unit": "ns", $measured}, "granule": {"value": 64, "unit": "B", $measured},
    "capacity": {"value": 500, "unit": "GB", $measured}, "measured_bytes": {"value": SIZE, "unit": "GiB", $measured}}}}
END
plan="--model=v41-flash --path=dram --traffic=decode,streams=16,layer=800us --layers=40 --unique=1 --hits=0 --shards=1 --copies=1"
for size in 1 200; do
    sed "s/SIZE/$size/" machine.json >of$size.json
    "$engram" size --machine=of$size.json $plan >of$size.txt 2>err.txt || fail "a plan: exit $?: $(cat err.txt)"
done
grep -q 'extrapolated: every value of the path was measured, dram only with 1 GiB where a table has 94.4' of1.txt ||
    fail "a larger table is not told"
grep -q extrapolated of200.txt && fail "a table that was measured counts as extrapolated"
grep -q '^  every value of the path was measured$' of200.txt || fail "a measured path is not told"
# Start-up takes the rate that was measured, and asks for the one that was not: 202.758 GB at 4 GB/s. Without it, it is asked for.
sed "s/SIZE/200/; s/\"latency\"/\"populate_rate\": {\"value\": 4, \"unit\": \"GB\/s\", $measured}, &/" machine.json >started.json
"$engram" size --machine=started.json $plan >started.txt 2>err.txt || fail "a start: exit $?: $(cat err.txt)"
grep -q 'beside populating 50.7 s, then pinning not known (dram.pin_rate), in all not known$' started.txt || fail "start-up: $(grep start-up started.txt)"
grep -q 'measurement: .*dram.populate_rate' started.txt || fail "a measured rate of populating is not told"
"$engram" size --machine=started.json $plan --assume=dram.pin_rate=4GB/s --assume=nvme.bandwidth=13GB/s >started.txt 2>err.txt || fail "a start: $(cat err.txt)"
grep -q 'reading nvme in order 15.6 s beside populating 50.7 s, then pinning 50.7 s, in all 101 s$' started.txt || fail "start-up: $(grep start-up started.txt)"
grep -q 'beside populating not known (dram.populate_rate)' of200.txt || fail "a rate from nowhere: $(grep start-up of200.txt)"
for bad in 4:no.unit 0GB/s:not.above.0 -1GB/s:not.above.0 4GB:unit..GB.,.one.of; do
    "$engram" size --machine=of200.json $plan --assume=dram.populate_rate=${bad%:*} >given.txt 2>err.txt
    [ $? = 1 ] && grep -q "populate_rate.*${bad#*:}" err.txt && [ "$(wc -l <err.txt)" = 1 ] || fail "populate_rate=${bad%:*}: $(cat err.txt)"
done
# Whatever was not measured is told, where it stands and however much there is: a rate, a slow-down, an option.
for given in --assume=dram.bandwidth=40GB/s --assume=dram.fetch_slowdown=80% --assume=dram.measured_bytes=200GiB --hash=5us --issue=2us \
    --scheduling=1us --interference=fetch=0,compute=0; do
    "$engram" size --machine=of200.json $plan $given >given.txt 2>err.txt || fail "$given: exit $?: $(cat err.txt)"
    name=${given#--assume=}
    case $given in --assume*) name=${name%=*} ;; *) name=${given%%=*} ;; esac
    grep -q -e "assumption: $name\$" given.txt || fail "$given is no assumption"
    grep -q 'extrapolated: not every value' given.txt || fail "$given: measured"
done
names="bandwidth=400GB/s latency=1us efficiency=50% outstanding=256 granule=64B request_overhead=24B knee_exponent=2 knee_outstanding=300"
links=$(for tier in long_name_of_link_1 long_name_of_link_2 long_name_of_link_3; do for n in $names; do echo "--assume=$tier.$n"; done; done)
"$engram" size --machine=of200.json ${plan/--path=dram/--path=dram,long_name_of_link_1,long_name_of_link_2,long_name_of_link_3} $links >given.txt 2>err.txt ||
    fail "many assumptions: exit $?: $(cat err.txt)"
grep -q 'rests on: measurement: .*assumption: .* long_name_of_link_3.knee_outstanding$' given.txt || fail "a long list of assumptions is cut"
grep -q 'extrapolated: not every value' given.txt || fail "many assumptions: measured"
# Of a table that eight hold, each has an eighth.
for size in 11 12; do
    sed "s/SIZE/$size/" machine.json >of$size.json
    "$engram" size --machine=of$size.json ${plan/shards=1/shards=8} >of$size.txt 2>err.txt || fail "a shared plan: exit $?: $(cat err.txt)"
done
grep -q 'dram only with 11 GiB where a table has 11.8' of11.txt || fail "an eighth of a table is not told"
grep -q extrapolated of12.txt && fail "an eighth of a table counts as extrapolated"
exit $failed
