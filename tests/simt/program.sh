#!/bin/bash
# The whole program with the simulated device: a run with variants of both backends, an error of the device
# that stays, and nothing stored as measured. Usage: program.sh ENGRAM_SIMT ENGRAM
set -u
simt=$1 engram=$2
work=$(mktemp -d) && cd "$work" && trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; exit 1; }
small=(-a preset=tiny -a rows=101 -a corpus=synthetic)
ask() { sqlite3 "$1" "$2"; }

"$simt" run gather -a variant=cuda,portable "${small[@]}" -a tokens=7 -a table_at=local,pinned,staged \
    -a graph=off,on --db a.db >a.txt 2>&1 || fail "run: $(tail -3 a.txt)"
[ "$(ask a.db "SELECT count(*) FROM points WHERE backend = 'cuda' AND kind <> 'simulated'")" = 0 ] ||
    fail "a simulated device's point is stored as measured"
[ "$(ask a.db "SELECT count(DISTINCT variant) FROM v_summary JOIN points USING (point_key)
    WHERE v_summary.backend = 'cuda' AND v_summary.outcome = 'measured'")" -ge 2 ] || fail "variants: $(cat a.txt)"
ask a.db "SELECT evidence_json FROM segments" | grep -q '"device":{"floor_ns":[1-9].*"sm_mhz":null,"why":"' ||
    fail "no evidence of the device"
[ "$(ask a.db "SELECT count(*) FROM roofs r JOIN points p ON p.point_key = r.roof_point_key
    WHERE p.backend = 'cuda'")" -ge 4 ] || fail "roofs of the device: $(cat a.txt)"
[ "$(ask a.db "SELECT count(*) FROM v_summary WHERE backend = 'cuda' AND outcome = 'measured'
    AND metric = 'cpu_us' AND percent_of_roof IS NULL AND axes_json ->> '$.table_at' IS NOT 'staged'")" = 0 ] ||
    fail "a kernel of the device stands beside no roof"
# What the host packs and copies has no roof, least of all one of the host's.
[ "$(ask a.db "SELECT count(*) FROM v_summary WHERE backend = 'cuda' AND percent_of_roof IS NOT NULL
    AND axes_json ->> '$.table_at' = 'staged'")" = 0 ] || fail "staged rows beside a roof"
grep -q '^device: L2 1 MiB, working sets .* MiB (it holds [0-9]* of [0-9]*), pinned tables .* MiB; clocks: .*; empty kernel' a.txt ||
    fail "no line on the device: $(cat a.txt)"
grep -q 'host executor' <(ask a.db "SELECT gpu FROM machines") || fail "machine"

# The 40th launch is a fault: its point fails with the reason, and the block goes on in a new process.
SIMT="0 1 1 40" "$simt" run gather -a variant=cuda_decode,portable "${small[@]}" -a tokens=5,9 --db b.db >b.txt 2>&1
code=$?
[ $code = 2 ] || fail "exit $code after a fault: $(tail -3 b.txt)"
[ "$(ask b.db "SELECT count(*) FROM v_summary WHERE outcome = 'failed' AND backend = 'cuda'")" -ge 1 ] ||
    fail "no failed point: $(cat b.txt)"
grep -q 'failed: .*planted fault' b.txt || fail "reason: $(cat b.txt)"
[ "$(ask b.db "SELECT count(DISTINCT point_key) FROM v_summary v JOIN points p USING (point_key)
    WHERE p.variant = 'portable' AND v.outcome = 'measured'")" = 2 ] || fail "the sweep did not go on: $(cat b.txt)"

# A driver without a device, one that says so with an error, one that is too old, a device that is: skipped in one line, and the
# exit code is that of a missing device where nothing else ran.
for driver in '0 0 0' '0 100 0' '0 35 0' '1 46 0' '1 0 0 80'; do
    export SIMT="0 1 1 0 $driver"
    case $driver in
        *80) why='host executor is sm_80, the kernels are for sm_90 and later' ;;
        *35*) why='the driver is older than the runtime' ;;
        *46*) why='the device is busy or unavailable' ;;
        *) why='no CUDA-capable device is detected' ;;
    esac
    all=('gather -a variant=cuda')
    [ "$driver" = '0 0 0' ] && all+=('gather -a variant=cuda_decode' 'hash -a variant=cuda' 'chain -a variant=cuda'
        'prefetch -a backend=cuda' 'interference -a backend=cuda')
    for experiment in "${all[@]}"; do
        rm -f c.db
        "$simt" run $experiment -a preset=tiny -a corpus=synthetic --db c.db >c.txt 2>c.err
        code=$?
        [ $code = 77 ] || fail "exit $code of $experiment, driver $driver: $(cat c.txt c.err)"
        [ "$(grep -c "^skipped ([0-9]*): ${experiment%% *}: no device ($why)$" c.txt)" = 1 ] ||
            fail "$experiment, driver $driver: $(cat c.txt c.err)"
    done
    rm -f c.db
    "$simt" run gather -a variant=all "${small[@]}" -a tokens=5 --db c.db >c.txt 2>c.err ||
        fail "variant=all without a device: $(cat c.txt c.err)"
    grep -q 'portable' c.txt || fail "variant=all measured nothing: $(cat c.txt)"
    "$simt" list >c.txt 2>&1 && grep -q cuda_decode c.txt || fail "list without a device: $(cat c.txt)"
done

# A device that nothing can be made on: its points fail with the reason, the others are measured.
SIMT='0 1 1 0 1 0 46' "$simt" run gather -a variant=cuda_decode,portable "${small[@]}" -a tokens=5 --db e.db >e.txt 2>&1
code=$?
[ $code = 2 ] || fail "exit $code of a device that is busy: $(cat e.txt)"
grep -q 'failed: .*the device is busy or unavailable' e.txt || fail "reason: $(cat e.txt)"
[ "$(ask e.db "SELECT count(DISTINCT point_key) FROM v_summary v JOIN points p USING (point_key)
    WHERE p.variant = 'portable' AND v.outcome = 'measured'")" = 1 ] || fail "nothing else ran: $(cat e.txt)"
unset SIMT

# The program without the simulated device, on a machine that has none.
[ -e /dev/nvidiactl ] && echo ok && exit 0
"$engram" run gather -a variant=cuda "${small[@]}" --db c.db >c.txt 2>&1
code=$?
[ $code = 77 ] || fail "exit $code without a device"
grep -q 'skipped ([0-9]*): gather: no device' c.txt || fail "reason: $(cat c.txt)"
echo ok
