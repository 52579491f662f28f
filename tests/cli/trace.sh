#!/usr/bin/env bash
# The verb trace from the outside: every word on files with known answers, refusals, imports.
# Arguments: program, source folder.
set -u
engram=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
export ENG_DB=$work/engram.db
python3 "$source/tests/oracle/nsys_fixtures.py" "$work/fx" || exit 1
real=$source/../shared/data/nsys/h100_2gpu_train.sqlite

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

# query WANTED SQL: of the results database.
query() {
    local got
    got=$(python3 -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(*row, sep="|")' "$ENG_DB" "$2")
    if [ "$got" != "$1" ]; then
        echo "'$2' gave '$got', not '$1'"
        failures=$((failures + 1))
    fi
}

steps=$work/fx/steps.sqlite
expect 0 "120 ranges, 64 marks" "$engram" trace summary "$steps"
expect 0 '"what":"range","name":"engram: fetch","n":16' "$engram" trace summary "$steps" --format=json
# Names of any length, whole in CSV and JSON; a table's are cut between characters.
long=$(printf 'é%.0s' $(seq 200))
cp "$steps" "$work/long.sqlite"
python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE NVTX_EVENTS SET text = ?, textId = NULL WHERE eventType = 59", ("x" + sys.argv[2],))
db.commit()' "$work/long.sqlite" "$long"
expect 0 "range,engram: x$long,120," "$engram" trace summary "$work/long.sqlite" --format=csv
expect 0 "\"name\":\"engram: x$long\"" "$engram" trace summary "$work/long.sqlite" --format=json
expect 0 "range  engram: x$(printf 'é%.0s' $(seq 35))  " "$engram" trace summary "$work/long.sqlite"
expect 0 "stream 13 of device 0,6,1115,230,230" "$engram" trace summary "$work/fx/engine_3.28.sqlite" --streams --format=csv
expect 0 "layer ranges: 608 us beside fetches; median 38 us inside (16), 20 us apart (24): +90.0 %" \
    "$engram" trace overlap "$steps"
expect 0 "0,,1,16,101376,500,100,30,0.7,20,0,0,0,10" "$engram" trace overlap "$steps" --format=csv
expect 0 "1,1142,0,1,8,0.1325,0.1,0.165" "$engram" trace saturation "$steps" --slices=4 --format=csv
expect 5 'no mark `saturated`' "$engram" trace saturation "$work/fx/engine_3.16.sqlite"
expect 5 "no kernel that --lookup=nothing matches" "$engram" trace overlap "$work/fx/engine_3.16.sqlite" --lookup=nothing
expect 5 "no kernel that --lookup=engram_lookup|engram_gather|engram_dequant matches" "$engram" trace overlap \
    "$work/fx/one_stream.sqlite" --hash=engram
expect 1 "did you mean overlap?" "$engram" trace overlab "$steps"
expect 1 "'x' is no layer" "$engram" trace overlap "$steps" --layers="$(seq -s, 100000000000 100000000012),x"
expect 1 "needs a FILE" "$engram" trace summary
expect 1 "unexpected argument 'b'" "$engram" trace summary "$steps" b
expect 1 "--format=xml: table, csv or json" "$engram" trace summary "$steps" --format=xml
expect 1 "--format=perfetto" "$engram" trace export "$steps"
expect 1 "--layers=1,x: 'x' is no layer" "$engram" trace overlap "$steps" --layers=1,x
expect 1 "--gate=(: no regular expression" "$engram" trace import "$work/fx/engine_3.16.sqlite" "--gate=("

# Tables fit 100 columns.
for word in summary overlap saturation; do
    if "$engram" trace "$word" "$steps" 2>&1 | grep -q '.\{101\}'; then
        echo "trace $word: a line of more than 100 columns"
        failures=$((failures + 1))
    fi
done

# Perfetto: a parser reads it; a full disk leaves no half file.
expect 0 "ui.perfetto.dev" "$engram" trace export "$steps" --format=perfetto --out="$work/p.json"
python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["traceEvents"]) > 180' "$work/p.json" || failures=$((failures + 1))
expect 7 "No space left" env ENG_FAIL_WRITE=1000 "$engram" trace export "$steps" --format=perfetto --out="$work/q.json"
[ -e "$work/q.json" ] && echo "a half file stayed" && failures=$((failures + 1))

# Refused files: exit code 6 and one line.
for file in graphs graph_calls lost old_major empty_export not_an_export; do
    said=$("$engram" trace import "$work/fx/$file.sqlite" 2>&1)
    if [ $? != 6 ] || [ "$(wc -l <<<"$said")" != 1 ]; then
        echo "import of $file: $said"
        failures=$((failures + 1))
    fi
done
[ -e "$ENG_DB" ] && echo "a refused import made a database" && failures=$((failures + 1))
expect 6 "nowhere: no such file" "$engram" trace summary "$work/nowhere"

# Imports: points beside ours, the same again changes nothing, other patterns are another import.
expect 0 "3 points as run" "$engram" trace import "$work/fx/engine_3.22.sqlite" --tokens=4
query "imported|3" "SELECT kind, count(*) FROM points"
before=$(python3 -c 'import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).iterdump())' "$ENG_DB" | sha256sum)
expect 0 "3 points were there" "$engram" trace import "$work/fx/engine_3.22.sqlite" --tokens=4
after=$(python3 -c 'import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).iterdump())' "$ENG_DB" | sha256sum)
[ "$before" = "$after" ] || { echo "importing again changed the database"; failures=$((failures + 1)); }
expect 0 "3 points as run" "$engram" trace import "$work/fx/engine_3.22.sqlite" --tokens=4 --step=execute_model
query "1|0.4
14|1.0" "SELECT axes_json ->> '\$.layer', median FROM v_summary WHERE metric = 'hidden' AND run_id = (SELECT min(run_id) FROM runs) ORDER BY 1 + 0"
query "end before start|1
no timestamps|1
repeated records|1" "SELECT DISTINCT what, count FROM drops ORDER BY what"
query "1" "SELECT count(DISTINCT provenance) FROM points WHERE provenance LIKE '%engine_3.22.sqlite, sha256 %, NVIDIA Nsight Systems invented, schema 3.22.1'"
expect 0 "engine_3.22.sqlite" "$engram" export --run=all
expect 0 "imported" "$engram" export --run=all

if [ -e "$real" ]; then
    expect 0 "1 points as run" "$engram" trace import "$real" --projection=nvjet --collective=ncclDevKernel
    expect 0 "projection   337" "$engram" trace import "$real" --projection=nvjet --collective=ncclDevKernel
    query "1" "SELECT count(*) FROM points WHERE provenance LIKE '%Nsight Systems 2026.2.1.210, schema 3.25.0'"
else
    echo "skip: no shared data"
fi
exit $((failures > 0))
