# engram train: a sweep from text to report, resumed after a kill and from the ledger file, and what it refuses.
# label: fast
set -u
engram=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
# expect CODE PATTERN COMMAND...: exit code and output (both streams)
expect() {
    local want=$1 pattern=$2 out code
    shift 2
    out=$("$@" 2>&1)
    code=$?
    [ "$code" = "$want" ] || fail "$*: exit $code, expected $want: $out"
    grep -Eq -- "$pattern" <<<"$out" || fail "$*: output lacks '$pattern': $out"
}
smoke=$source/sweeps/train/smoke.sweep
tiny=(-a rung=tiny -a text=synthetic -a budget=5)
train() { "$engram" train "$@"; }
dry() { "$engram" train "$@" --dry-run --runs=none.csv | tr '\n' ' '; return "${PIPESTATUS[0]}"; }
sql() { sqlite3 "$1" "$2"; }

# --- a sweep, side by side, and once more: everything is found ------------------------------------------------
expect 0 '6 runs, 6 of them to train' train "$smoke" --dry-run --runs=runs.csv
expect 0 'all rows: outcome measured, from measured' train "$smoke" --db=a.db --runs=runs.csv --jobs=2
# A header, six runs, six likenesses.
[ "$(wc -l <runs.csv)" = 13 ] || fail "runs.csv has $(wc -l <runs.csv) lines"
[ "$(sql a.db "SELECT count(*) FROM points WHERE kind = 'measured' AND provenance = 'engram run'")" = 6 ] || fail "points"
[ "$(sql a.db "SELECT count(DISTINCT point_key) FROM series WHERE name = 'train_loss'")" = 6 ] || fail "series"
# Gates: 80 bins each of four runs, of gate and score, at points of training and by tenth; the file keeps their shares.
[ "$(sql a.db "SELECT count(DISTINCT point_key) FROM histograms WHERE name = 'gate:100' AND json_array_length(counts_json) = 80")" = 4 ] ||
    fail "histograms of gates"
[ "$(sql a.db "SELECT count(*) FROM histograms WHERE name GLOB 'gate_decile_score:*' AND scale = 'signed_log'")" = 40 ] ||
    fail "histograms of scores by tenth"
grep -q 'gate_decile:saturated05:1:0' runs.csv || fail "runs.csv lacks shares of gates"
expect 0 '6 found measured' train "$smoke" --db=a.db --runs=runs.csv
expect 0 '6 runs, 0 of them to train' train "$smoke" --dry-run --runs=runs.csv

# --- every sweep of the folder: arms that can be, within 0.1 % of their budget -------------------------------------
for sweep in "$source"/sweeps/train/*.sweep; do
    [ "$sweep" = "$smoke" ] && continue
    budget=0.1
    expect 0 '[0-9]+ runs, [0-9]+ of them to train' train "$sweep" --dry-run --runs=none.csv -a text=synthetic -a budget=$budget
    plan=$("$engram" train "$sweep" --dry-run --runs=none.csv -a text=synthetic -a budget=$budget 2>/dev/null)
    grep -q skipped <<<"$plan" && fail "$sweep has arms that cannot be"
    [[ $sweep == */rho*.sweep || $sweep == */placement.sweep || $sweep == */optimizer.sweep ]] || continue
    grep -v 'iso=flops' <<<"$plan" | grep -oE '\([+-][0-9.]+ %\)' | tr -d '(+%)-' | awk '$1 > 0.1 { exit 1 }' ||
        fail "$sweep: P_total is off by more than 0.1 %"
done

# --- a fresh machine: runs come from the file, with their provenance --------------------------------------------
expect 0 'from imported' train "$smoke" --db=b.db --runs=runs.csv
[ "$(sql b.db "SELECT count(*) FROM points WHERE kind = 'imported' AND provenance LIKE 'runs.csv: trained on %'")" = 6 ] ||
    fail "imported points"
losses="SELECT axes_json ->> '\$.rho', axes_json ->> '\$.model_seed', value FROM sample_values JOIN points USING (point_key)
    WHERE metric = 'loss' ORDER BY 1, 2"
[ "$(sql a.db "$losses")" = "$(sql b.db "$losses")" ] || fail "losses differ between measured and imported"
[ ! -e b.db.train/*.ckpt ] || fail "something was trained"
# With the folder of the runs they are runs of this machine, with their histograms, whatever the file has.
expect 0 'all rows: outcome measured, from measured' train "$smoke" --db=again.db --work=a.db.train --runs=runs.csv
[ "$(sql again.db "SELECT count(DISTINCT point_key) FROM histograms WHERE name = 'gate:100'")" = 4 ] || fail "histograms of runs found in their folder"
[ "$(sql a.db "$losses")" = "$(sql again.db "$losses")" ] || fail "losses differ between measured and found"
expect 5 'has none of the 6 runs' train "$smoke" --db=c.db --runs=none.csv --recorded
expect 0 'imported' train "$smoke" -a model_seed=1:3:+1 --db=c.db --runs=runs.csv --recorded
# Several sweeps into one database, as docs/replicate.md has it; one of them has no run.
for sweep in 'rho = 0.4, 0.8' 'model_seed = 8, 9' 'rho = 0.8, 1'; do
    printf '[sweep]\nname = part\nquestion = q\n[train]\nrung = tiny\ntext = synthetic\nbudget = 5\n%s\n' "$sweep" >part.sweep
    "$engram" train part.sweep --recorded --db=many.db --runs=runs.csv >>many.log 2>&1
    echo "code $?" >>many.log
done
[ "$(grep -c 'code 0' many.log) $(grep -c 'code 5' many.log)" = "2 1" ] || fail "several sweeps: $(cat many.log)"
expect 0 imported train "$smoke" --recorded --db=many.db --runs=runs.csv
expect 0 'index.html' "$engram" report ablation --db=many.db --out=many
grep -q 'tiny, synthetic text, 5 tokens per parameter</td><td>synthetic</td><td class="number">6<' many/index.html || fail "one database of several sweeps has not 6 runs"

# --- a likeness is to the pure model of another seed; an interruption leaves none out ---------------------------
sqlite3 like.db ".import --csv runs.csv r" >/dev/null
like="SELECT count(*) FROM r l JOIN r a ON a.key = substr(l.manifest, 13, 32) JOIN r b ON b.key = substr(l.manifest, 49, 32)
    WHERE l.outcome = 'likeness'"
[ "$(sql like.db "$like AND b.manifest LIKE '% engram_layers=0 %'")" = 6 ] || fail "likenesses of runs that are not there"
seed="substr(%s.manifest, instr(%s.manifest, ' seed='), 8)"
[ "$(sql like.db "$like AND ${seed//%s/a} = ${seed//%s/b}")" = 0 ] || fail "likeness to a model of the same seed"
four=(-a rung=tiny -a text=synthetic -a budget=12 -a rho=1,0.4 -a model_seed=1,2)
"$engram" train train "${four[@]}" --db=paused.db --runs=paused.csv >/dev/null 2>&1 &
pid=$!
until [ -s paused.csv ]; do kill -0 $pid || break; sleep 0.02; done
kill -INT $pid
wait $pid
[ $? = 130 ] || fail "four runs were over before they could be interrupted"
expect 0 measured train train "${four[@]}" --db=paused.db --runs=paused.csv
[ "$(sql paused.db "SELECT count(DISTINCT point_key) FROM series WHERE name GLOB 'cka:*'")" = 4 ] ||
    fail "runs finished before an interruption were not compared"
# So are those that earlier sweeps brought into the database, each without one to compare with.
for arms in '-a rho=0.4 -a model_seed=1,2' '-a rho=1 -a model_seed=1' '-a rho=1 -a model_seed=2'; do
    # shellcheck disable=SC2086
    expect 0 imported train train -a rung=tiny -a text=synthetic -a budget=12 $arms --db=order.db --runs=paused.csv --recorded
done
expect 0 '4 found' train train "${four[@]}" --db=order.db --runs=paused.csv --recorded
[ "$(sql order.db "SELECT count(DISTINCT point_key) FROM series WHERE name GLOB 'cka:*'")" = 4 ] ||
    fail "runs of an earlier sweep were not compared"

# --- two sweeps that share a folder train each model once ----------------------------------------------------------
both=(-a rung=tiny -a text=synthetic -a budget=12 -a rho=1,0.4 -a model_seed=5,6 --work=both.train --runs=both.csv)
"$engram" train train "${both[@]}" --db=both1.db >both1.txt 2>&1 &
pid=$!
expect 0 'measured' train train "${both[@]}" --db=both2.db
wait $pid || fail "the first of two sweeps ended with $?: $(cat both1.txt)"
[ "$(grep -c ,measured, both.csv)" = 4 ] || fail "two sweeps of four models: $(wc -l <both.csv) lines"
[ "$(sql both1.db "$losses")" = "$(sql both2.db "$losses")" ] || fail "two sweeps have other losses"

# --- killed in the middle, with a checkpoint at every step: the same losses -------------------------------------
long=(-a rung=tiny -a text=synthetic -a budget=12 -a rho=0.4,1)
expect 0 measured train train "${long[@]}" --db=whole.db --runs=whole.csv
for try in 1 2 3 4; do
    "$engram" train train "${long[@]}" --db=killed.db --runs=killed.csv --checkpoint=0 >/dev/null 2>&1 &
    pid=$!
    for wait in $(seq 200); do
        compgen -G 'killed.db.train/*.ckpt' >/dev/null && break
        sleep 0.02
    done
    kill -9 $pid 2>/dev/null || break
    wait $pid 2>/dev/null
done
expect 0 measured train train "${long[@]}" --db=killed.db --runs=killed.csv
[ "$(sql whole.db "$losses")" = "$(sql killed.db "$losses")" ] || fail "losses differ after kills"
# Killed before the ninth file of each try: the next one goes on from the last checkpoint.
was=0
for try in 1 2 3; do
    ENG_KILL_AT=rename:9 "$engram" train train "${long[@]/rho=0.4,1/rho=0.4}" --db=tries.db --runs=tries.csv \
        --checkpoint=0 >tries.txt 2>&1
    now=$(stat -c %s tries.db.train/*.steps) || now=0
    [ "$now" -gt "$was" ] || fail "try $try ends with $now bytes of steps, as did the last with $was: $(cat tries.txt)"
    was=$now
done
# Interrupted once a run has begun (two hundred of them take minutes).
interrupted() {
    "$engram" train train -a rung=tiny -a text=synthetic -a budget=12 -a model_seed=1:200:+1 \
        --db=stopped.db --runs=stopped.csv --checkpoint=0 >stopped.txt 2>&1 &
    pid=$!
    until compgen -G 'stopped.db.train/*.ckpt' >/dev/null; do
        kill -0 $pid || break
        sleep 0.02
    done
    kill -INT $pid
    wait $pid
    code=$?
    cat stopped.txt
    return $code
}
expect 130 'goes on where it stopped' interrupted
# A run that cannot go on: why is said once, and the others are trained.
key=$(grep -m1 -v '^key' whole.csv | cut -d, -f1)
mkdir -p damaged.db.train
echo broken >"damaged.db.train/$key.ckpt"
expect 2 'not a checkpoint of this version' train train "${long[@]}" --db=damaged.db --runs=damaged.csv
[ "$(grep -c . damaged.csv)" = 2 ] || fail "damaged.csv has not one run"
# One that another machine has finished meanwhile is its run, though it was begun here.
expect 0 measured train train "${long[@]}" --db=damaged.db --work=other.train --runs=whole.csv
[ "$(sql damaged.db "SELECT count(*) FROM points WHERE kind = 'imported' AND provenance LIKE 'whole.csv: trained on %'")" = 1 ] ||
    fail "a run of another machine: $(sql damaged.db 'SELECT kind, provenance FROM points')"
said=$(train train "${long[@]}" --db=damaged2.db --work=damaged.db.train --runs=damaged.csv 2>&1 | grep -c 'not a checkpoint')
[ "$said" = 1 ] || fail "a failure is said $said times"

# --- another text under the same name makes other models, which are not compared with the first ------------------
text() {
    python3 - "$1" <<'PY'
import hashlib, json, os, random, sys
rng = random.Random(int(sys.argv[1]))
os.makedirs("text/training", exist_ok=True)
vocab = {chr(64 + i): i for i in range(64)}
json.dump({"model": {"type": "BPE", "vocab": vocab, "merges": []}, "decoder": {"type": "ByteLevel"}}, open("text/training/bpe64.json", "w"))
for part, n in ("train", 24000), ("heldout", 4096):
    ids = b"".join(rng.randrange(64).to_bytes(4, "little") for _ in range(n))
    open(f"text/training/bpe64-{part}.ids", "wb").write(ids)
    head = {"format": "engram-stream-1", "corpus": part, "kind": "real", "ids_file": f"bpe64-{part}.ids", "n_tokens": n, "vocab_ids": 64,
            "sources": [{"package": "drawn", "tokens": n, "bytes": 3 * n}], "sha256": hashlib.sha256(ids).hexdigest(),
            "document_starts": [0], "document_sources": [0]}
    json.dump(head, open(f"text/training/bpe64-{part}.json", "w"))
PY
}
texts=(-a rung=tiny -a budget=5 -a rho=0.4,1 --data=text --db=text.db --runs=text.csv)
text 1
expect 0 ' 2 points to measure' train train "${texts[@]}"
expect 0 ' 2 found measured' train train "${texts[@]}"
text 2
expect 0 ' 2 points to measure' train train "${texts[@]}"
[ "$(sql text.db "SELECT count(DISTINCT stream_digest) FROM points JOIN streams USING (stream_digest)")" = 2 ] || fail "texts of points"
expect 0 'index.html' "$engram" report ablation --db=text.db --out=text.out
[ "$(grep -c '<td>tiny, 5 tokens per parameter\(, other text [0-9a-f]*\)\?</td><td>training</td><td class="number">2<' text.out/index.html)" = 2 ] ||
    fail "two texts are not two studies"

# --- what it refuses -------------------------------------------------------------------------------------------
expect 1 'changes two variables, rho and lr; a comparison changes one' \
    train train "${tiny[@]}" -a rho=0.4,1 -a lr=0.01,0.02 --db=d.db --runs=d.csv
expect 1 "a single pass over [0-9]+ tokens needs as many; text 'synthetic' has 65536" \
    train train -a rung=tiny -a text=synthetic -a budget=200 --db=d.db --runs=d.csv
expect 1 'layer 7 is not one of the rung' train train "${tiny[@]}" -a rho=0.4 -a engram_at=7 --db=d.db --runs=d.csv
expect 1 'heads' train train "${tiny[@]}" -a head=2 --db=d.db --runs=d.csv
expect 1 "\[gather:size\]: experiment 'gather' is not here: .engram train. has train alone" train "$source/sweeps/quickstart.sweep" --db=d.db
expect 1 "experiment 'train' is not here: .engram train. trains it" "$engram" run "$smoke" --db=d.db
expect 1 'name one sweep file' train --db=d.db
expect 6 'scripts/fetch_data --training makes it' train train --data=nowhere --db=d.db --runs=d.csv
expect 1 '^error engram: --runs: names no file' train train "${tiny[@]}" -a rho=0.4 --db=d.db --runs=
expect 7 '^error engram: --runs: .*/proc/nowhere' train train "${tiny[@]}" -a rho=0.4 --db=d.db --runs=/proc/nowhere/x.csv
echo broken >d.csv
expect 6 'd.csv:1: column 1' train train "${tiny[@]}" --db=d.db --runs=d.csv
rm -f d.csv
# Fewer parameters than the smallest table: the point is skipped, and says why.
expect 5 'skipped: .*rho=0.99' train train "${tiny[@]}" -a rho=0.99 --db=e.db --runs=e.csv
expect 5 'skipped: .*rho=0.99.*0 runs, 0 of them to train, 1 skipped' dry train "${tiny[@]}" -a rho=0.99
expect 5 'skipped: .*memory=4096: memory and rho both' dry train "${tiny[@]}" -a rho=0.4 -a memory=4096
expect 0 'skipped: .*rho=0.99.*1 runs, 1 of them to train, 1 skipped' dry train "${tiny[@]}" -a rho=0.4,0.99
# --- a diverged model is a result, in file and database -----------------------------------------------------------
expect 2 'failed' train train "${tiny[@]}" -a lr=10 -a rho=0.4 --db=g.db --runs=g.csv
grep -q ',failed,"\?loss' g.csv || fail "g.csv has no failed run"
expect 2 'failed' train train "${tiny[@]}" -a lr=10 -a rho=0.4 --db=h.db --runs=g.csv

# --- a full disk keeps the ledger file whole ----------------------------------------------------------------------
expect 0 measured train train "${tiny[@]}" -a lr=0.01 --db=w.db --runs=w.csv
cp runs.csv full.csv # the result is there: a line of the ledger is all that is left to write
expect 7 '^error engram: full.csv: .*No space left on device' \
    env ENG_FAIL_WRITE=3000 "$engram" train train "${tiny[@]}" -a lr=0.01 --db=i.db --work=w.db.train --runs=full.csv
cmp -s runs.csv full.csv || fail "the ledger file changed"
full=(-a rung=tiny -a text=synthetic -a budget=2 -a rho=0.4 --db=j.db --runs=j.csv --checkpoint=0)
expect 7 'No space left on device' env ENG_FAIL_WRITE=100000 "$engram" train train "${full[@]}"
expect 0 measured train train "${full[@]}"

# --- the report ------------------------------------------------------------------------------------------------
expect 0 'index.html' "$engram" report ablation --db=b.db --out=report
for text in 'lowest mean at rho' 'No arms on the training text that a claim is about' 'tiny, synthetic text, 5 tokens per parameter' "the paper&#39;s contrasts\|the paper's contrasts" \
    'read from its figures' 'where the lowest mean lies' 'runs.csv: trained on'; do
    grep -q -- "$text" report/index.html || fail "the report lacks '$text'"
done
# Whatever was measured into the database since, the page is headed by training.
expect 0 measured "$engram" run hash -a tokens=16 -a pairs=1 -a segments=1 --db=b.db
expect 0 'index.html' "$engram" report ablation --db=b.db --out=report
grep -q '<dt>sweep</dt><dd>smoke' report/index.html || fail "the report is headed by another run"
for figure in rho curves load suppressed classes sources lens likeness layers; do
    [ -s "report/$figure.svg" ] || fail "no figure $figure"
done
expect 0 'index.html' "$engram" report ablation --db=i.db --out=report2
expect 0 'index.html' "$engram" report gates --db=a.db --out=gates
for figure in training deciles shapes rows phrases; do
    [ -s "gates/$figure.svg" ] || fail "no figure $figure of gates"
done
grep -q 'gathered for nothing' gates/index.html || fail "gates: no sentence about traffic"
expect 0 'index.html' "$engram" report gates --db=b.db --out=gates2
[ -s gates2/deciles.svg ] || fail "no gates from the file of runs"
grep -q 'the file of runs keeps their shares alone' gates2/index.html || fail "histograms are not said to be missing"
expect 0 'text +training' "$engram" list train

[ "$failures" = 0 ] || exit 1
