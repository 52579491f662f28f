#!/usr/bin/env bash
# The report verb from the outside: list, and the errors that need no results. Arguments: program, source folder.
set -u
engram=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE TEXT COMMAND...: exit code, and a part of what it says on either stream.
expect() {
    local code=$1 text=$2 said got
    shift 2
    said=$("$@" 2>&1)
    got=$?
    if [ "$got" != "$code" ] || ! grep -qF -- "$text" <<<"$said"; then
        echo "'$*' ended with $got and said: $said (wanted $code and: $text)"
        failures=$((failures + 1))
    fi
}

expect 0 "quickstart" "$engram" report --list
expect 1 "did you mean quickstart?" "$engram" report quickstrat --db="$work/none.db"
expect 1 "--dbs" "$engram" report --dbs=x
expect 6 "$work/none.db" "$engram" report --db="$work/none.db" --out="$work/out"
expect 7 "ENG_REPORTS_DIR" env ENG_REPORTS_DIR="$work/nowhere" "$engram" report --list
head -c 5000 /dev/zero >"$work/zero.db"
expect 6 "zero.db" "$engram" report --db="$work/zero.db" --out="$work/out"
if [ -e "$work/none.db" ] || [ -e "$work/out/index.html" ]; then
    echo "a failing report left files behind"
    failures=$((failures + 1))
fi
exit $((failures > 0))
