#!/usr/bin/env bash
# engram stream from the outside: import, info and list agree; errors are one line with the right code.
# Arguments: the program, the source folder.
set -u
engram=$1
fetched=$2/data/cache
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ENG_DATA=$work/data
failures=0

fail() { echo "FAIL: $*"; failures=1; }

# expect CODE PATTERN ARGUMENT...: exit code, and a line of output or of the error that matches.
expect() {
    local code=$1 pattern=$2 output got=0
    shift 2
    output=$("$engram" stream "$@" 2>&1) || got=$?
    [ "$got" = "$code" ] || fail "stream $*: exit $got, expected $code: $output"
    grep -qE -- "$pattern" <<<"$output" || fail "stream $*: no '$pattern' in: $output"
    if [ "$code" != 0 ] && [ "$(grep -c . <<<"$output")" != 1 ]; then
        fail "stream $*: more than one line: $output"
    fi
}

printf '[1, 2, 3]\n[4, 5]\n' >"$work/chat.jsonl"
expect 0 '^tokens +5$' import "$work/chat.jsonl"
expect 0 '^documents +2$' info chat
expect 0 '^distinct +5$' info "$work/data/chat.json"
expect 0 '^chat +imported +5 +2 +129280 ' list
# sha256 of five little-endian words: the identity does not depend on who computes it.
digest=$(printf '\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0' | sha256sum | cut -d' ' -f1)
expect 0 "^sha256 +$digest\$" info chat

# An import that fails leaves the stream of that name as it was: a name that JSON cannot hold, and disks that are full
# before the ids, before the header, and only when what was buffered of the header is written.
for i in {1..200}; do echo "[$i]"; done >"$work/many.jsonl"
cp "$work/many.jsonl" "$work/"$'caf\xe9.jsonl'
expect 6 'not UTF-8' import "$work/"$'caf\xe9.jsonl' --name=chat
for budget in 0 900; do
    ENG_FAIL_WRITE=$budget expect 7 'chat\.(ids|json): cannot write: No space' import "$work/many.jsonl" --name=chat
done
(
    ulimit -f 1
    expect 7 'chat\.json: cannot write: File too large' import "$work/many.jsonl" --name=chat
    exit $failures
) || failures=1
expect 0 "^sha256 +$digest\$" info chat
[ "$(ls "$work/data")" = $'chat.ids\nchat.json' ] || fail "left over: $(ls "$work/data")"

printf '\1\0\0\0\2\0\0\0' >"$work/raw.log"
expect 1 'raw\.log: .*--format' import "$work/raw.log"
expect 0 '^corpus +mine$' import "$work/raw.log" --format=raw --name=mine --vocab=3
expect 6 'raw\.log: index 1: id 2 is not in \[0, 2\)' import "$work/raw.log" --format=raw --vocab=2
expect 1 "'docs' is reserved" import "$work/raw.log" --format=raw --name=docs
expect 1 '--format=csv' import "$work/raw.log" --format=csv
expect 1 '--vocab=0' import "$work/raw.log" --format=raw --vocab=0
expect 5 "did you mean 'chat'" info chta
expect 1 'needs a FILE' import
expect 1 "'improt'" improt x

printf x >>"$work/data/mine.ids"
expect 6 'mine\.ids: 9 bytes' info mine
# A damaged stream is told, and the sound ones are still listed.
output=$("$engram" stream list 2>/dev/null) && fail "list: a damaged stream went unnoticed"
grep -q '^chat ' <<<"$output" || fail "list: a damaged stream hides the others"

# What scripts/fetch_data made opens, digest and all.
for corpus in prose docs code multilingual filler; do
    if [ -f "$fetched/$corpus.json" ]; then
        expect 0 '^tokens +[0-9]{5,}$' info "$fetched/$corpus.json"
    else
        echo "not checked: no stream '$corpus' in $fetched"
    fi
done
[ "$failures" = 0 ] && echo "stream verb holds"
exit "$failures"
