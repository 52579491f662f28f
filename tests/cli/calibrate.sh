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
exit $failed
