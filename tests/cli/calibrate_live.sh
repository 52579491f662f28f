#!/usr/bin/env bash
# label: nightly
# engram calibrate as a whole: a machine file that a plan can use, killed and resumed, predictions beside measured
# points, a recording, a report. How far models are off depends on what else runs, so no error is judged here.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export ENG_DB=$work/t.db ENG_TABLES=$work/tables
failed=0
fail()
{
    echo "FAILED: $*"
    failed=1
}

"$engram" calibrate --quick --out=machine.json 2>err.txt >out.txt &
sleep 15
kill -INT $!
wait $!
[ $? = 130 ] || fail "interrupted: not exit 130: $(tail -1 err.txt)"
"$engram" calibrate --quick --validate --out=machine.json --record=here.csv >out.txt 2>err.txt
code=$?
[ $code = 0 ] || [ $code = 3 ] || fail "exit $code: $(tail -3 err.txt)"
grep -q 'resum\|found measured' err.txt || fail "measured from the start: $(head -3 err.txt)"
for words in 'dram.latency' 'dram.efficiency' 'file.knee_exponent' 'latency ladder' 'reads by depth' 'exact stack'; do
    grep -q "$words" out.txt || fail "does not say $words"
done
head -1 here.csv | grep -q engram-recording || fail "no recording"
"$engram" size --machine=./machine.json --path=dram --path=file --traffic=decode,streams=16,layer=800us --layers=40 \
    --unique=1 --hits=0 --shards=1 --copies=1 >plan.txt 2>err.txt || fail "no plan on the machine file: exit $?: $(cat err.txt)"
grep -q 'layer 1' plan.txt || fail "the plan has no layers"
"$engram" report validation --out=page 2>err.txt || fail "no report: $(tail -1 err.txt)"
grep -q 'signed error' page/index.html || fail "the report has no sentence"
exit $failed
