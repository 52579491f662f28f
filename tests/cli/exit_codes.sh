#!/usr/bin/env bash
# One rule for all verbs: a file named by the user that is missing, unreadable or malformed ends with 6, a name that
# nothing has with 5, a database of another program or version with 7; one line that names the file. Arguments: the
# program, the source folder.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset ENG_DB ENG_DATA
export ENG_DATA=$work/data
mkdir data folder
failures=0
"$engram" run collide -a preset=tiny -a corpus=uniform -a tokens=64 --db=good.db >out.txt 2>err.txt || { cat err.txt; exit 1; }
sqlite3 foreign.db 'CREATE TABLE t(x)'
cp good.db newer.db && sqlite3 newer.db 'PRAGMA user_version = 99'
plugin() { # plugin NAME EDIT: the example plugin, changed
    sed "$2" "$source/docs/examples/gather_plugin.c" >"$1.c"
    gcc -shared -fPIC -I"$source/include" -o "$1.so" "$1.c" || exit 1
}
plugin old ''
plugin no_cost '/\.cost = /d'
plugin no_supports '/\.supports = /d'
plugin quote 's/\.name = "mine"/.name = "a\\"b"/'
plugin group 's/\.name = "mine"/.name = "all"/'
plugin twice 's/{&g_mine, /&\&g_mine, /'
for name in text.db text.so text.json text.npy; do echo 'a few words of text' >$name; done
: >empty.raw

while IFS='|' read -r code text arguments; do
    read -ra words <<<"$arguments"
    said=$(timeout 60 "$engram" "${words[@]}" 2>&1 >out.txt </dev/null)
    got=$?
    if [ $got != "$code" ] || ! grep -qF -- "$text" <<<"$said" || [ "$(grep -c '^error' <<<"$said")" != 1 ]; then
        echo "FAIL: $arguments: exit $got, expected $code and '$text': $said"
        failures=1
    fi
done <<'TABLE'
6|none.sweep: no such sweep file|run none.sweep
6|folder/: not a regular file|run folder/
6|none.so: no such file|run gather --plugin=none.so
6|text.so: no shared object|run gather --plugin=text.so
6|folder: neither|run gather --plugin=folder
6|no_cost.so: kernel 0 lacks|run gather --plugin=no_cost.so
6|no_supports.so: kernel 0 lacks|run gather --plugin=no_supports.so
6|quote.so: kernel 0 has no name that a sweep can say|run gather --plugin=quote.so
6|group.so: kernel 0 has no name that a sweep can say|run gather --plugin=group.so
6|twice.so: two kernels of gather are called mine|run gather --plugin=twice.so
6|twice.so: two kernels of gather are called mine|ab old.so twice.so gather
6|none.so: no such file|ab none.so old.so
6|none.so: no such file|ab old.so none.so
6|text.so: no shared object|ab old.so text.so
6|none.sweep: no such sweep file|ab old.so old.so none.sweep
6|none.db: no such database|status --db=none.db
6|none.db: no such database|runs --db=none.db
6|none.db: no such database|export --db=none.db
6|none.db: no such database|report --db=none.db --out=out
6|none.db: no such database|compare a b --db=none.db
6|none.db: no such database|compare latest latest --db=good.db --db-b=none.db
6|none.db: no such database|merge none.db --db=good.db
6|text.db: not a database|status --db=text.db
6|text.db: not a database|runs --db=text.db
6|text.db: not a database|export --db=text.db
6|text.db: not a database|report --db=text.db --out=out
6|text.db: not a database|compare a b --db=text.db
6|text.db: not a database|merge text.db --db=good.db
6|text.db: not a database|merge good.db --db=text.db
6|text.db: not a database|run collide -a preset=tiny -a corpus=uniform -a tokens=64 --db=text.db
6|folder: a folder|status --db=folder
6|none.jsonl: no such file|audit none.jsonl --preset=tiny
6|none.json: no such file|audit ./none.json --preset=tiny
6|text.json|audit text.json --preset=tiny
6|folder/: not a regular file|audit folder/ --preset=tiny
6|none.raw: no such file|stream import none.raw --format=raw
6|empty.raw: empty file|stream import empty.raw --format=raw
6|text.npy|stream import text.npy
6|folder: not a regular file|stream import folder --format=raw
6|none.json: no such file|stream info ./none.json
6|text.json|stream info text.json
6|none.json: no such file|tokmap --tokenizer=none.json
6|text.json|tokmap --tokenizer=text.json
6|folder: not a regular file|tokmap --tokenizer=folder
6|none.ids: no such file|rows --preset=tiny --tokens=@none.ids
6|text.json: position 0|rows --preset=tiny --tokens=@text.json
6|folder: not a regular file|rows --preset=tiny --tokens=@folder
6|none.sqlite: no such file|trace summary none.sqlite
6|none.sqlite: no such file|trace overlap none.sqlite
6|none.sqlite: no such file|trace saturation none.sqlite
6|none.sqlite: no such file|trace export none.sqlite --format=perfetto
6|none.sqlite: no such file|trace import none.sqlite
6|none.json: no such file|rows --tokens=0 --tokenizer=none.json
5|no run 'zz'|status zz --db=good.db
5|no run 'zz'|export --run=zz --db=good.db
5|no run 'zz'|report --run=zz --db=good.db --out=out
5|no run 'zz'|compare zz latest --db=good.db
5|no run 'latest~1', there is 1|compare latest~1 latest --db=good.db
5|no run 'latest~7', there is 1|status latest~7 --db=good.db
5|has no verdicts|export --verdicts --db=good.db
5|has no points of gather|export --experiment=gather --db=good.db
1|unknown experiment 'gatherr'; did you mean 'gather'?|export --experiment=gatherr --db=good.db
5|no stream 'none'|stream info none
1|latest~x: after latest~ stands|status latest~x --db=good.db
7|foreign.db: a database of another program|status --db=foreign.db
7|foreign.db: a database of another program|runs --db=foreign.db
7|foreign.db: a database of another program|export --db=foreign.db
7|foreign.db: a database of another program|merge foreign.db --db=good.db
7|newer.db: database version 99 is newer|compare a b --db=newer.db
7|newer.db: database version 99 is newer|report --db=newer.db --out=out
7|newer.db: database version 99 is newer|merge good.db --db=newer.db
7|/proc/out.csv|export --db=good.db --out=/proc/out.csv
7|cannot make the folder|report --db=good.db --out=text.db/out
TABLE
[ "$failures" = 0 ] && echo "exit codes follow the rule"
exit "$failures"
