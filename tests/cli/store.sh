#!/usr/bin/env bash
# engram store from the outside: seeded and imported tables, verify, info; killed and gone on with; a full disk and
# bad input as one line with the right code. Arguments: the program, the source folder.
set -u
engram=$1
source=$2
data=$source/tests/data/safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
fail() { echo "FAIL: $*"; failures=1; }

# expect CODE PATTERN ARGUMENT...: exit code, and a line of output or of the error that matches.
expect() {
    local code=$1 pattern=$2 output got=0
    shift 2
    output=$(timeout 60 "$engram" store "$@" 2>&1) || got=$?
    [ "$got" = "$code" ] || fail "store $*: exit $got, expected $code: $output"
    grep -qE -- "$pattern" <<<"$output" || fail "store $*: no '$pattern' in: $output"
    if [ "$code" != 0 ] && [ "$(grep -c . <<<"$output")" != 1 ]; then
        fail "store $*: more than one line: $output"
    fi
}
digest() { "$engram" store info "$1" | sed -n 's/^digest *//p'; }
absent() { [ ! -e "$1" ] && [ ! -e "$1.part" ] || fail "$1 or $1.part is there"; }

# Seeded: the preset says what is not asked for.
expect 0 '^rows +60$' create tiny --preset=tiny
expect 0 '^format +fp8$' info tiny
expect 0 '^rows +70001$' create whole --rows=70001
expect 0 'at 4096, a row every 256$' info whole
expect 0 '^whole: 6 blocks hold$' verify whole tiny
expect 1 'whole: exists, and is left alone' create whole --rows=70001
expect 0 'a row every 144$' create int4 --rows=5 --format=int4 --threads=1
expect 0 '^content .*"seed":5}$' create five --rows=5 --row-dims=64 --seed=5

# Killed while blocks are written: nothing has the name, the next call goes on, the file is the same.
for moment in write:1 write:6 write:13 rename:1; do
    (ENG_KILL_AT=$moment "$engram" store create killed --rows=70001 --threads=1 >/dev/null; exit $?) 2>/dev/null
    [ $? = 137 ] || fail "$moment: not killed"
    [ ! -e killed ] || fail "$moment: a killed call left a table"
    [ $moment = rename:1 ] || expect 6 'killed.part: a table file still being written' info killed.part
    expect 0 '^rows +70001$' create killed --rows=70001
    cmp -s whole killed || fail "$moment: another file than the unbroken one"
    rm killed
done

# A full disk, injected and real (a limit on file size).
for budget in 0 5000 9000000; do
    got=$(ENG_FAIL_WRITE=$budget "$engram" store create full --rows=70001 2>&1)
    [ $? = 7 ] && grep -q 'full: cannot write .*No space left' <<<"$got" || fail "full disk at $budget: $got"
    absent full
done
(ulimit -f 1000 && "$engram" store create full --rows=70001 2>err.txt)
[ $? = 7 ] && grep -q 'full: cannot write' err.txt || fail "file size limit: $(cat err.txt)"
absent full

# Damage.
cp whole damaged && printf x | dd of=damaged bs=1 seek=$((4096 + 5 * 1048576)) conv=notrunc status=none
expect 0 '^rows' info damaged
expect 6 'damaged: checksum mismatch in block 1 \(values of rows 16384 to 32767' verify damaged
head -c 1000000 whole >cut
expect 6 'cut: truncated: 1000000 bytes, where 70001 fp8 rows of 256 dims take' verify cut
expect 6 'none: no such file' info none
echo 'a few words' >text
expect 6 'text: 12 bytes: not a table file' info text
expect 6 'not a regular file' info .
mkfifo pipe
expect 6 'pipe: not a regular file' info pipe
expect 6 'pipe: not a regular file' create bad --from=pipe

# Checkpoints: one file, its shards through their index, model-parallel files.
expect 0 '^rows +77$' create one --from="$data/whole.safetensors" --row-dims=64
expect 0 '^rows +83$' create other --from="$data/whole.safetensors" --row-dims=64 --layer=14 --format=fp8_packed
expect 0 '^rows +77$' create index --from="$data/model.safetensors.index.json" --row-dims=64
ranks=$(printf "$data/model%d-mp4.safetensors," 0 1 2 3)
expect 0 '^rows +77$' create ranks --from="$ranks" --row-dims=64 --rows=77
[ "$(digest one)" = "$(digest index)" ] && cmp -s one index && cmp -s one ranks || fail "shards give another table"
expect 6 'has rows of 64 dims, not 256' create bad --from="$data/whole.safetensors"
expect 6 "no tensor 'layers.3.engram.embed.weight'" create bad --from="$data/whole.safetensors" --layer=3
expect 6 'text: .*no safetensors file' create bad --from=text
expect 1 'would have other values' create bad --from="$data/whole.safetensors" --row-dims=64 --format=bf16
expect 1 'imported rows have no seed' create bad --from="$data/whole.safetensors" --seed=1
absent bad

expect 1 'say create, verify or info'
expect 1 "'crate' is not create" crate x
expect 1 'needs a FILE' verify
expect 1 "unexpected argument 'y'" info x y
expect 1 '--format=fp9' create x --format=fp9
expect 1 'multiple of 32, not 33' create x --rows=5 --row-dims=33
expect 1 '--layer=3: no Engram layer of preset v41-flash' create x --layer=3
expect 1 'did you mean "laptop"' create x --preset=laptp
expect 7 'cannot open' create /no/such/folder/table --rows=5

# The files as the package of the format writes them today.
if python3 -c 'import safetensors, numpy' 2>/dev/null; then
    python3 "$source/tests/oracle/safetensors_files.py" fresh || fail "safetensors_files.py"
    expect 0 '^rows +77$' create fresh.table --from=fresh/model.safetensors.index.json --row-dims=64
    [ "$(digest one)" = "$(digest fresh.table)" ] || fail "fresh files give another table"
else
    echo "not checked: freshly written files (no Python package safetensors); the committed ones are"
fi
[ "$failures" = 0 ] && echo "store verb holds"
exit "$failures"
