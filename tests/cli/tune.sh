#!/usr/bin/env bash
# label: slow
# engram tune and audit from the outside: a whole search on a tiny preset, answered by the database the second
# time; one cut short that goes on; a chain to weigh the winner by; bad input as one line. Arguments: the program, the
# source folder.
set -u
engram=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ENG_DATA=$work/data ENG_DB=$work/t.db
failures=0

fail() { echo "FAIL: $*"; failures=1; }
has() { grep -qE -- "$2" <<<"$1" || fail "no '$2' in: $1"; }
# expect CODE PATTERN ARGUMENT...
expect() {
    local code=$1 pattern=$2 got=0 output
    shift 2
    output=$("$engram" "$@" 2>&1) || got=$?
    [ "$got" = "$code" ] || fail "$*: exit $got, expected $code: $output"
    has "$output" "$pattern"
    if [ "$code" != 0 ] && [ "$(grep -c . <<<"$output")" != 1 ]; then fail "$*: more than one line: $output"; fi
}

# ---- a search ----
shape=(-a preset=tiny -a corpus=synthetic -a tokens=8)
few=("${shape[@]}" -a threads=1 -a pages=2m 
     -a variant=naive,portable@burst=4,portable@burst=12@ahead=24,portable@ahead=2,portable@burst=8)
first=$("$engram" tune gather "${few[@]}" --budget=0 2>"$work/log") || fail "tune: exit $?: $(cat "$work/log")"
has "$first" '^gather: 5 candidates \(0 cannot run here\), judged by cpu time$'
has "$first" '^1 of 2 +5 +6 +3 '
has "$first" '^2 of 2 +3 +99 +1 '
has "$first" '^(winner|no clear winner): '
has "$first" 'A/A floor [0-9]'
has "$first" '^chain: no measured chain of tiny at 8 tokens here'
has "$first" '^use: engram run gather .*-a tokens=8 .*-a variant='
has "$first" '^complete=1$'
runs=$(grep -c 'run: new run' "$work/log")
[ "$runs" = 2 ] || fail "tune: $runs runs for two stages"
# Again: the same answer, nothing measured.
second=$("$engram" tune gather "${few[@]}" --budget=0 2>"$work/log") || fail "tune again: exit $?"
grep -q 'new run' "$work/log" && fail "tune again measured"
has "$second" '^2 of 2 .*found$'
[ "$(grep -E '^(winner|no clear winner)' <<<"$first")" = "$(grep -E '^(winner|no clear winner)' <<<"$second")" ] ||
    fail "tune again answers otherwise"
# What it measured are ordinary runs.
expect 0 'tune gather' status
expect 0 '^gather .*portable@' run gather "${shape[@]}" -a variant=portable@burst=4 -a pairs=2 -a segments=1

# ---- killed before its first sample: what another run measures meanwhile has no round in common with the rest ----
kept=$ENG_DB
export ENG_DB=$work/killed.db
ENG_KILL_AT=sample:1 "$engram" tune gather "${few[@]}" --budget=0 >/dev/null 2>&1
expect 0 '1 points measured' run gather "${shape[@]}" -a threads=1 -a pages=2m -a variant=portable@burst=4
resumed=$("$engram" tune gather "${few[@]}" --budget=0 2>"$work/log") || fail "tune after a kill: exit $?: $(cat "$work/log")"
grep -q 'run: resumed run' "$work/log" || fail "tune after a kill did not go on: $(cat "$work/log")"
has "$resumed" '^complete=1$'
borrowed=$(sqlite3 "$ENG_DB" "SELECT count(*) FROM run_points l JOIN blocks b USING (block_id) WHERE l.run_id <> b.run_id")
[ "$borrowed" = 0 ] || fail "tune took $borrowed candidates from another run"
export ENG_DB=$kept

# ---- cut short, then on ----
more=("${shape[@]}" -a threads=1)
cut=$("$engram" tune hash "${more[@]}" --budget=0.001 2>/dev/null) && fail "tune without an answer: exit 0"
has "$cut" '^complete=0 ceiling=0.001s: the budget ended the search after 0 of [1-9] stages, with ([0-9]+) of [0-9]+ candidates left; the same command goes on'
for budget in 0.4 0.8 60; do
    last=$("$engram" tune hash "${more[@]}" --budget=$budget 2>/dev/null)
    has "$last" '^complete=[01]'
    if grep -q '^complete=1' <<<"$last"; then break; fi
done
has "$last" '^complete=1$'

# ---- worth for the chain ----
expect 0 '^chain ' run chain "${shape[@]}" -a pairs=12
expect 0 '^chain: over the second, x[0-9.]+ on gather = .* of the chain at 8 tokens \(gather is ' tune gather "${few[@]}"
expect 0 'roof for chain' run gather "${shape[@]}" -a variant=naive,portable -a pairs=4
expect 0 'roof for chain' run hash "${shape[@]}" -a variant=naive,portable -a pairs=4

# ---- bad input ----
expect 1 'tune: name an experiment' tune
expect 1 "did you mean 'gather'|gather" tune gathr
expect 1 'tokens has 2 values; a search is for one shape' tune gather -a tokens=1,2
expect 1 'a search sets pairs' tune gather -a pairs=2
expect 1 'reuse counts' tune reuse
expect 1 '--budget=soon' tune gather --budget=soon
expect 1 '--budget=-1' tune gather --budget=-1
expect 1 "no parameter 'brst'; did you mean 'burst'" tune gather -a variant=portable@brst=4
expect 1 'burst is not a whole number from 1 to 64' run gather -a variant=portable@burst=65
expect 1 "naive has no parameter 'burst'" run gather -a variant=naive@burst=4

# ---- audit; the preset tiny has no tokenizer: ids are compressed ones ----
for ((i = 0; i < 600; i++)); do printf '%d\n' $((i % 5)); done | paste -sd, | sed 's/^/[/; s/$/]/' >"$work/five.jsonl"
audit=$("$engram" audit "$work/five.jsonl" --preset=tiny 2>&1) || fail "audit: exit $?: $audit"
has "$audit" '^five.jsonl: 600 tokens \(imported\), preset tiny$'
has "$audit" '^64 +[0-9.]+ +[0-9.]+ +[0-9.]+ +100\.0$'
has "$audit" '2-gram +20\.03 % +0 1$'
has "$audit" '^verdict: no real corpus to compare with'
json=$("$engram" audit "$work/five.jsonl" --preset=tiny --format=json 2>/dev/null)
if command -v python3 >/dev/null; then
    python3 -c '
import json, sys
d = json.loads(sys.argv[1])
assert d["tokens"] == 600 and d["distinct_ids"] == 5 and d["verdict"] == "unknown", d
assert d["ngrams"][0]["ids"] == [0, 1] and [b["batch"] for b in d["batches"]] == [64, 256], d
' "$json" || fail "audit: JSON: $json"
fi
[ -e "$ENG_DATA" ] && fail "audit wrote into the data folder"
expect 0 '^uniform ' audit uniform --preset=tiny
printf '[1, 2, 3]\n' >"$work/short.jsonl"
expect 6 'short.jsonl: 3 tokens are fewer than a batch of 64' audit "$work/short.jsonl" --preset=tiny
printf '[9999]\n' >"$work/high.jsonl"
expect 6 'id 9999 is not in' audit "$work/high.jsonl" --preset=tiny
echo words >"$work/notes.txt"
expect 1 'notes.txt: the name does not tell the format; give --read=raw' audit "$work/notes.txt" --preset=tiny
expect 1 'audit: name a file' audit
expect 1 '--format=xml' audit x.jsonl --preset=tiny --format=xml
expect 1 '--read=csv' audit "$work/short.jsonl" --preset=tiny --read=csv
expect 6 'tokenizer.json: no such file' audit "$work/short.jsonl"
data=$2/data/cache
if [ -f "$data/filler.json" ] && [ -f "$data/prose.json" ]; then
    ENG_DATA=$data expect 0 '^verdict: filler-like: .* where prose has ' audit filler
    ENG_DATA=$data expect 0 '^verdict: text-like' audit "$data/prose.json"
else
    echo "not checked: no fetched corpora"
fi
[ "$failures" = 0 ] && echo "tune and audit hold"
exit "$failures"
