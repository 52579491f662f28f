#!/usr/bin/env bash
# What a newcomer meets first: every verb has help, every experiment can be listed, every sweep of the repository can be
# planned (with the synthetic stream where no text is), every report is known. Arguments: the program, the source folder.
set -u
engram=$1
source=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failures=0
expect() { # PATTERN COMMAND...: exit 0, and the pattern on standard output
    local pattern=$1
    shift
    if ! "$@" >out.txt 2>err.txt; then
        echo "newcomer: $*: $(cat err.txt)" >&2
        failures=$((failures + 1))
    elif ! grep -qE -- "$pattern" out.txt; then
        echo "newcomer: $*: no '$pattern' in its output" >&2
        failures=$((failures + 1))
    fi
}

verbs=$("$engram" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 10 ] || { echo "newcomer: only these verbs: $verbs" >&2; failures=1; }
for verb in $verbs; do expect "^usage: engram $verb" "$engram" "$verb" --help; done

experiments=$("$engram" list | sed -n '2,/^$/s/^\([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$experiments")" -ge 7 ] || { echo "newcomer: only these experiments: $experiments" >&2; failures=1; }
for experiment in $experiments; do expect '^metric' "$engram" list "$experiment"; done

for sweep in "$source"/sweeps/*.sweep; do
    expect '^[0-9]+ points .* blocks, about' "$engram" run "$sweep" --dry-run --data="$dir"
    # A report draws it: that of its name, or the one that its comment names; or it says "no report".
    head -5 "$sweep" | grep -q '^#.*[Nn]o report' && continue
    name=$(sed -n '1,5s/^#.*engram report \([a-z]*\).*/\1/p' "$sweep" | head -1)
    : "${name:=$(basename "$sweep" .sweep)}"
    expect "^ *$name\\b" "$engram" report --list
done
expect '^machine ' "$engram" doctor --data="$dir"
exit $failures
