#!/usr/bin/env bash
# engram tokmap and rows from the outside: published digests, overrides, input forms, and bad input as one
# line with the right code. Arguments: the program, the source folder.
set -u
engram=$1
source=$2
shared=$source/../shared
pitfalls=$source/tests/data/tokenizer_pitfalls.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ENG_DATA=$work/data
failures=0

fail() { echo "FAIL: $*"; failures=1; }

# expect CODE PATTERN ARGUMENT...: exit code, and a line of output or of the error that matches.
expect() {
    local code=$1 pattern=$2 output got=0
    shift 2
    output=$("$engram" "$@" 2>&1) || got=$?
    [ "$got" = "$code" ] || fail "$*: exit $got, expected $code: $output"
    grep -qE -- "$pattern" <<<"$output" || fail "$*: no '$pattern' in: $output"
    if [ "$code" != 0 ] && [ "$(grep -c . <<<"$output")" != 1 ]; then
        fail "$*: more than one line: $output"
    fi
}

rows() { local code=$1 pattern=$2; shift 2; expect "$code" "$pattern" rows --compressed "$@"; }

# ---- published digests ----
rows 0 '^f5a64799492bea90bc6d87f0cb8a67bb983441e1cd9c12ec2e7b8df6cbcfee1d$' --tokens=0,3 --digest
rows 0 '^8e0187ea859a7db65517a540eb5210457ec907fd0b2f44042d830366cbedbda5$' --tokens=0,3 --digest --layer=1
rows 0 '^33e046238287e6e8b7c3466bdb4b7b47182ad19f9115afac8a1983ede219ba80$' --tokens=0,3 --digest --layer=14
rows 0 '^1e80da27901ddc10c10c3797d446603241591fd4a2977ae3414ca37621c9829b$' --preset=v41-flash \
    --tokens=5,6,129,7,8,9,10,11 --dead=2 --digest
rows 0 '^cf1d1d762705105581d7af9ca99fb37a7de4bee1e2fb00149ef3499d041315f2$' --tokens=3,4,5,6,7,8,9,10,11,12 \
    --digest
rows 0 '^b32ac44985d3edbf90efb4770cf44c7d84363d7c5c0f2574b1e4a21f22e56551$' --preset=engram-demo \
    --tokens=0,12981,20918,237,7546 --digest
rows 0 '"sha256_i64le": "f5a64799' --tokens=0,3 --digest --format=json

# ---- forms of output and input ----
rows 0 '^position,layer,column,order,head,row$' --tokens=0,3
rows 0 '^1,14,23,4,7,379703671$' --tokens=0,3
rows 0 '^1,14,0,2,0,7976312$' --tokens=0,3 --layer=14
rows 0 '^\{"preset": "tiny", "layers": \[1, 3\], "columns": 4, "positions": 2, "rows": \[$' --preset=tiny \
    --tokens=0,1 --format=json
rows 0 '^  \[\[2, 18, 31, 59\], \[11, 42, 58, 84\]\]$' --preset=tiny --tokens=0,1 --format=json
printf '0\n1 2,50\t96\n' >"$work/ids"
want=$("$engram" rows --preset=tiny --compressed --tokens=0,1,2,50,96)
[ "$(wc -l <<<"$want")" = 41 ] || fail "rows: not one line a cell"
[ "$("$engram" rows --preset=tiny --compressed --tokens="@$work/ids")" = "$want" ] || fail "rows: @FILE differs"
[ "$("$engram" rows --preset=tiny --compressed --tokens=- <"$work/ids")" = "$want" ] || fail "rows: - differs"
printf '5,\0\0,7' >"$work/zeros"
rows 6 'zeros: not a text file \(zero byte at 2\)' --tokens="@$work/zeros"
rows 7 'standard input: cannot read: Is a directory' --tokens=- <"$work"
if command -v python3 >/dev/null; then
    "$engram" rows --compressed --tokens=0,3 --format=json >"$work/rows.json"
    python3 - "$work/rows.json" <<'PY' || fail "rows: JSON and digest disagree"
import hashlib, json, struct, sys
d = json.load(open(sys.argv[1]))
flat = [row for position in d["rows"] for layer in position for row in layer]
digest = hashlib.sha256(struct.pack("<%dq" % len(flat), *flat)).hexdigest()
sys.exit(digest != "f5a64799492bea90bc6d87f0cb8a67bb983441e1cd9c12ec2e7b8df6cbcfee1d")
PY
fi

# ---- overrides: a configuration nobody published (numpy and a plain walk give these) ----
override=(--layers=0,3,7 --max-order=5 --heads=5 --start=1000003 --vocab=4096 --pad=7)
rows 0 "^c5a781b1a8e46c1445d18fe354a742c3b74e1d6ee0e2dbf7d92efcc8bbb5ebf8\$" "${override[@]}" --tokens=1,2,3,4095,7,0,9 --dead=4 --digest

# ---- token maps ----
expect 0 '^\{"ids": 48, "compressed": 27, "sha256_i32le": "76adbfdc4058d6e2.*", "sha256_i64le": "218fb7564117b40f' \
    tokmap --tokenizer="$pitfalls"
v3=$shared/data/deepseek_v3_tokenizer.json
if [ -f "$v3" ]; then
    expect 0 '"compressed": 98627, "sha256_i32le": "cd48cb62' tokmap --tokenizer="$v3"
    expect 0 '^ae44755b67863206d87381913c4b4fc7d93abe1cbf10424927179e464e0684a5$' rows --preset=engram-demo \
        --tokens=22898,19737,270,9327,1494,112253,270,15000,406,11999,25670,349,16 --digest --tokenizer="$v3"
    # V4.1's map by the short cut; 129264 marks an image and has an id of its own.
    expect 0 '^26d0c9f895fee993de243c58fe9bf4714ab86bb2773953642fd2416fa625503e$' rows --digest \
        --tokens=0,16205,26541,270,9190 --tokenizer="$v3"
    expect 0 '^1,14,' rows --tokens=0,129264 --dead=1 --tokenizer="$v3"
    expect 6 'position 1: id 129280 ' rows --tokens=0,129280 --tokenizer="$v3"
    mkdir -p "$ENG_DATA" && ln -s "$v3" "$ENG_DATA/tokenizer.json"
    expect 0 '"ids": 128815' tokmap
else
    echo "not checked: no shared data"
fi

# ---- bad input ----
expect 6 'pitfalls\.json.* digest 76adbfdc.* c60a8632' rows --tokens=0 --tokenizer="$pitfalls"
head -c 900 "$pitfalls" >"$work/cut.json"
expect 6 'cut\.json: line ' tokmap --tokenizer="$work/cut.json"
expect 6 'none\.json: no such file' tokmap --tokenizer="$work/none.json"
ENG_DATA=$work/empty expect 6 'tokenizer\.json: no such file \(scripts/fetch_data' rows --tokens=0
expect 1 'preset tiny names no tokenizer' rows --preset=tiny --tokens=0
rows 6 'position 1: id 99092 is not in a vocabulary of 99092' --tokens=0,99092
rows 6 'position 1: -1 ' --tokens=0,-1
rows 6 'position 2: 99999999999999999999 ' --tokens=0,1,99999999999999999999
rows 6 'position 0: x ' --tokens=x
rows 6 'no numbers' --tokens=
printf '' >"$work/nothing"
rows 6 'nothing: no numbers' --tokens="@$work/nothing"
rows 6 'gone: no such file' --tokens="@$work/gone"
rows 1 '--tokens is missing'
rows 1 'called "v41-flsh", did you mean "v41-flash"' --preset=v41-flsh --tokens=0
rows 1 '--layer=2: the Engram layers are 1, 14' --tokens=0 --layer=2
rows 1 '--format=xml' --tokens=0 --format=xml
rows 1 'no token at position 2: the 2 tokens of --tokens have positions 0 to 1' --tokens=0,1 --dead=2
rows 1 '--dead: x is not a whole number from 0 on' --tokens=0,1 --dead=x
rows 1 'heads: 0 is out of range' --tokens=0 --heads=0
rows 1 'heads: 1000000 is out of range' --tokens=0 --heads=1000000
rows 1 'max-order: 0 is out of range' --tokens=0 --max-order=0
rows 1 'max-order: 99 is out of range' --tokens=0 --max-order=99
rows 1 'min-order: 5 is out of range' --tokens=0 --min-order=5
rows 1 'start: 0 is out of range' --tokens=0 --start=0
rows 1 'start: .* more than 2\^62 rows' --tokens=0 --start=4611686018427387904
rows 1 'vocab: 0 is out of range' --tokens=0 --vocab=0
rows 1 'pad: 99092 is not an id' --tokens=0 --pad=99092
rows 1 '--heads=many' --tokens=0 --heads=many
rows 1 '--layers: position 1: -3 ' --tokens=0 --layers=1,-3
rows 1 'layers: id 4 is given twice' --tokens=0 --layers=4,4
rows 1 '--layers: 9 layers, at most 8' --tokens=0 --layers=0,1,2,3,4,5,6,7,8
rows 1 'did you mean --heads' --tokens=0 --haeds=3
[ "$failures" = 0 ] && echo "tokmap and rows hold"
