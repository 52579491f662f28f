#!/usr/bin/env bash
# Bad input to run, list, status and report: one line that names file, key or value, and the documented exit code;
# what was there before is unharmed. Arguments: the program, the source folder. (Tokenizers and ids: front.sh;
# token logs: stream.sh.)
set -u
engram=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset ENG_DB ENG_DATA
export ENG_DATA=$work/data
failures=0
short=(collide -a preset=tiny -a corpus=uniform -a tokens=64)

fail() { echo "FAIL: $*"; failures=1; }

# expect CODE TEXT ARGUMENT...: exit code, and one line on stderr that holds TEXT; the last words of a line of a
# table are the arguments.
expect() {
    local code=$1 text=$2 said got=0
    shift 2
    said=$(timeout 60 "$engram" "$@" 2>&1 >stdout </dev/null) || got=$?
    [ "$got" = "$code" ] || fail "$*: exit $got, expected $code: $said"
    [ "$code" = 0 ] && return
    grep -qF -- "$text" <<<"$said" || fail "$*: no '$text' in: $said"
    [ "$(grep -c . <<<"$said")" = 1 ] || fail "$*: more than one line: $said"
}

# ---- names and values of the command line: code | words of the message | arguments ----
while IFS='|' read -r code text arguments; do
    read -ra words <<<"$arguments"
    expect "$code" "$text" "${words[@]}"
done <<'TABLE'
1|'lst' (did you mean list?)|lst
1|name a sweep file or an experiment|run
1|'gathr'; did you mean 'gather'|run gathr
1|'gathr'; did you mean 'gather'|list gathr
1|--frsh (did you mean --fresh?)|run gather --frsh
1|--dta (did you mean --data?)|list --dta=x
1|unexpected argument 'x'|doctor x
1|'tokns' of experiment gather; did you mean 'tokens'|run gather -a tokns=1
1|'fp9' is not one of|run gather -a row_format=fp9
1|did you mean "v41-flash"|run gather -a preset=v41flash
1|'../x' is not a stream name|run gather -a corpus=../x
1|no stream 'unform'; did you mean 'uniform'|run gather -a corpus=unform
1|expected axis=values|run gather -a tokens
1|tokens has no value|run gather -a tokens=
1|tokens 0 is below|run gather -a tokens=0
1|tokens -1 is below|run gather -a tokens=-1
1|'99999999999999999999' is not an integer|run gather -a tokens=99999999999999999999
1|heads 0 is below|run gather -a heads=0
1|heads 1000000 is above|run gather -a heads=1000000
1|orders|run gather -a orders=0 -a corpus=uniform
1|orders|run gather -a orders=2-99 -a corpus=uniform
1|rows 0 is below|run gather -a rows=0
1|'nan' is not a number|run gate -a alignment=nan
1|ends below its start|run gather -a tokens=8:1:x2
1|more than 100000 values|run gather -a rows=2^10:2^20:+1
1|combinations, at most 1000000|run gather -a rows=2:2002:+1 -a tokens=1:2002:+1
1|did you mean 'tokens'|run gather -a where=tokns<2
5|leaves none|run hash -a corpus=uniform -a where=tokens<1 --dry-run
6|none.sweep: no such sweep file|run none.sweep
6|not a regular file|run /dev/null
6|none.db: no such database|status --db=none.db
1|--db= names no file|status --db=
7|no point fits this machine: gather rows=|run gather -a corpus=uniform -a rows=2^40 --db=never.db
TABLE
[ -e never.db ] && [ "$(sqlite3 never.db 'SELECT count(*) FROM runs')" != 0 ] && fail "a refused table left a run"

# A table that does not fit is a skipped row beside points that do; points that fit alone but not together, too.
ENG_MEMORY_BYTES=100000000 "$engram" run gather -a corpus=uniform -a rows=2^8,2^30 -a tokens=4 -a pairs=1 -a segments=1 \
    --db=fit.db >stdout 2>stderr || fail "a table too large among others: $(cat stderr)"
grep -q 'needs [0-9]* bytes of memory' stderr || fail "no word of the bytes needed: $(cat stderr)"
[ "$(sqlite3 fit.db "SELECT count(DISTINCT point_key) FROM v_summary WHERE outcome = 'skipped'")" -ge 1 ] ||
    fail "the table that does not fit has no row"

# ---- sweep files: code | words | text (printf) ----
while IFS='|' read -r code text content; do
    # shellcheck disable=SC2059
    printf "$content" >bad.sweep
    expect "$code" "bad.sweep$text" run bad.sweep --dry-run
done <<'TABLE'
1|: no section names an experiment|
1|:1: a key before the first [section]|a = 1
1|:1: section heading without ']'|[gather\n
1|:1: text after the section heading's|[gather] tokens = 1\n
1|:2: expected 'key = value'|[gather]\ntokens\n
1|:1: [gathr]: unknown experiment|[gathr]\n
1|:2: [gather] tokns = 1: unknown axis|[gather]\ntokns = 1\n
1|:3: [gather] tokens is given twice|[gather]\ntokens = 1\ntokens = 2\n
1|:2: [sweep] pairs = 0: must lie|[sweep]\npairs = 0\n[gather]\n
1|:2: [sweep] pars = 3: unknown key 'pars'; did you mean 'pairs'|[sweep]\npars = 3\n[gather]\n
1|:2: [gather] zip = tokens|[gather]\nzip = tokens\n
1|:2: [gather] where = tokens <: column|[gather]\nwhere = tokens <\n
1|: not a text file (zero byte at 11)|[gather]\nto\000kens = 1\n
1|: not UTF-8 text|[sweep]\nname = \377\n[gather]\n
TABLE
printf '[sweep]\r\nname = lines\r\n[collide]\r\npreset = tiny\r\ncorpus = uniform\r\n' >dos.sweep
expect 0 '' run dos.sweep --dry-run
printf '[gather]\ntokens = %s\n' "$(seq -s, 1000)" >long.sweep
expect 1 'long.sweep:2: line longer' run long.sweep
expect 1 'error engram: ' run "$(head -c 20000 /dev/zero | tr '\0' x)"

# ---- a stream that is not what its header says, met by a run ----
mkdir data
printf '\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0' >log.raw
"$engram" stream import log.raw --name=mine >stdout || fail "import"
sed 's/"sha256": "../"sha256": "00/' data/mine.json >data/digest.json
sed -i 's/"corpus": "mine"/"corpus": "digest"/' data/digest.json
cp data/mine.ids data/digest.ids
expect 6 "mine.ids: sha256 is" run hash -a corpus=digest --db=x.db
printf '{"format"' >data/cut.json
: >data/cut.ids
expect 6 "cut.json: line 1: not JSON" run hash -a corpus=cut --db=x.db
printf '{}' >data/tokenizer.json
expect 6 "tokenizer.json: model: missing" run hash -a corpus=mine --db=x.db
[ "$(sqlite3 x.db 'PRAGMA integrity_check; SELECT count(*) FROM runs')" = "$(printf 'ok\n0')" ] || fail "x.db is not usable"

# ---- databases: whose, which version, what kind of file ----
"$engram" run "${short[@]}" --db=good.db >stdout 2>stderr || fail "good.db: $(cat stderr)"
sqlite3 other.db 'CREATE TABLE t(x)'
cp good.db newer.db && sqlite3 newer.db 'PRAGMA user_version = 99'
printf 'a few words of text' >text.db
printf x >one.db
head -c 20000 good.db >cut.db
mkfifo fifo.db
mkdir dir.db
while IFS='|' read -r code name text; do
    [ -f "$name" ] && cp "$name" before
    for verb in "run ${short[*]}" status "report --out=out"; do
        read -ra words <<<"$verb"
        expect "$code" "$name: $text" "${words[@]}" --db="$name"
    done
    [ ! -f "$name" ] || cmp -s before "$name" || fail "$name was changed"
done <<'TABLE'
7|other.db|a database of another program
7|newer.db|database version 99 is newer
6|text.db|not a database
6|one.db|not a database
6|cut.db|the database is damaged
6|fifo.db|not a regular file
6|dir.db|a folder
6|/dev/null|not a regular file
TABLE
expect 7 "text.db: cannot make the folder" run "${short[@]}" --db=text.db/x.db
expect 7 "/proc/x.db: cannot open" run "${short[@]}" --db=/proc/x.db
expect 5 "no run 'zz'" status zz --db=good.db
expect 5 "'zz'" report --run=zz --db=good.db --out=out
expect 7 "text.db: cannot make the folder" report --db=good.db --out=text.db/out
: >empty.db
expect 0 '' run "${short[@]}" --db=empty.db
expect 0 '' run "${short[@]}" --db=:memory: # a name like another, not SQLite's
[ -s ./:memory: ] || fail ":memory: was not taken as a name"
expect 1 'did you mean quickstart' report quikstart --db=good.db
expect 6 'a?b.db: no such database' status --db=$'a\nb.db' # one line, whatever a name holds

# ---- a database in a folder that cannot be written: read, and not run on (root writes everywhere: be nobody) ----
mkdir shelf && cp good.db shelf/ && cp "$engram" program && chmod 555 shelf program && chmod 444 shelf/good.db && chmod 755 .
as_other=()
[ "$(id -u)" != 0 ] || as_other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if "${as_other[@]}" ./program --version >stdout 2>stderr; then
    "${as_other[@]}" ./program status --db=shelf/good.db >stdout 2>stderr || fail "status of a read-only database: $(cat stderr)"
    "${as_other[@]}" ./program run "${short[@]}" --db=shelf/good.db >stdout 2>stderr
    [ $? = 7 ] && grep -q 'good.db: .*read-only' stderr || fail "run on a read-only database: $(cat stderr)"
else
    echo "not checked: read-only databases"
fi
chmod 755 shelf

# ---- standard streams ----
for words in list --help --version "run --help" "status --db=good.db"; do
    read -ra words <<<"$words"
    for target in '>/dev/full' '>&-'; do
        got=0
        eval '"$engram" "${words[@]}"' "$target" 2>stderr || got=$?
        [ "$got" = 7 ] && grep -q 'standard output: cannot write' stderr || fail "${words[*]} $target: exit $got"
    done
done
for closed in '<&- >&- 2>&-' '2>&-'; do # a database must not become the program's standard error
    rm -f closed.db*
    eval '"$engram" run "${short[@]}" --db=closed.db' "$closed" >stdout
    [ "$(sqlite3 closed.db 'PRAGMA integrity_check; SELECT state FROM runs')" = "$(printf 'ok\ndone')" ] ||
        fail "run $closed"
done
env -i "$engram" status --db=good.db >stdout || fail "status without an environment"
# A decimal comma and an i without a dot, from a locale of our own: few machines have one.
localedef -i tr_TR -f UTF-8 "$work/tr_TR.UTF-8" || echo "not checked: other locales"
LOCPATH=$work LC_ALL=tr_TR.UTF-8 TZ=no/where "$engram" run "${short[@]}" --db=good.db --fresh >stdout 2>stderr ||
    fail "run in another locale: $(cat stderr)"
grep -q ' ngrams_per_row *[0-9]*\.[0-9]' stdout || fail "run in another locale: $(cat stdout)"
[ "$(sqlite3 good.db "PRAGMA integrity_check; SELECT count(*) FROM runs WHERE state <> 'done'")" = "$(printf 'ok\n0')" ] ||
    fail "good.db is not usable"
[ "$failures" = 0 ] && echo "bad input is told"
exit "$failures"
