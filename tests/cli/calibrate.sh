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

# A plan says where it goes beyond what a machine file was measured with.
measured='"kind": "measured", "date": "2026-11-30", "source": "a point of a test"'
cat >machine.json <<END
{"summary": "a test", "tiers": {"dram": {"bandwidth": {"value": 40, "unit": "GB/s", $measured},
    "latency": {"value": 100, "unit": "ns", $measured}, "granule": {"value": 64, "unit": "B", $measured},
    "capacity": {"value": 500, "unit": "GB", $measured}, "measured_bytes": {"value": SIZE, "unit": "GiB", $measured}}}}
END
plan="--path=dram --traffic=decode,streams=16,layer=800us --layers=40 --unique=1 --hits=0 --shards=1 --copies=1"
for size in 1 200; do
    sed "s/SIZE/$size/" machine.json >of$size.json
    "$engram" size --machine=of$size.json $plan >of$size.txt 2>err.txt || fail "a plan: exit $?: $(cat err.txt)"
done
grep -q 'extrapolated: dram was measured with 1 GiB, a table has 94.4' of1.txt || fail "a larger table is not told"
grep -q 'measured, with smaller tables' of1.txt || fail "the verdict does not tell"
grep -q extrapolated of200.txt && fail "a table that was measured counts as extrapolated"
exit $failed
