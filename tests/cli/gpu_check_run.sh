#!/bin/bash
# label: slow
# scripts/gpu_check --run with programs that only pretend: parts that fail, hang or are not there leave the others
# alone, and what comes back is few files of bounded size.
set -u
source=$2
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; cat "$work/result/report.txt"; exit 1; }
pack=$work/pack
mkdir -p "$pack/lib" "$work/tools"
cp "$source/scripts/gpu_check" "$pack/"

# Its gate fails, its true-size gather hangs, its prefetch leaves traces; BIG names a file of 20 MiB.
cat >"$pack/engram" <<'END'
#!/bin/bash
db=
for word in "$@"; do [ "$db" = next ] && db=$word; [ "$word" = --db ] && db=next; done
case "$*" in
    *variant=cuda*) [ "${DEVICE:-yes}" = yes ] || exit 77 ;;
esac
case "$*" in
    list*) ;;
    doctor*) echo 'gpu: 132 multiprocessors' ;;
    export*) printf 'backend,outcome,experiment,variant,tokens\ncuda,measured,hash,cuda_reciprocal,64\n' ;;
    'run gate'*) echo 'no such luck'; exit 2 ;;
    *rows=16000000*) [ -z "${HANG:-}" ] || exec sleep 600 ;;
    run*)
        [ -n "$db" ] && echo rows >>"$db"
        case "$*" in *--trace*) mkdir -p "${db%/*}/traces" && echo trace >"${db%/*}/traces/$RANDOM.db" ;; esac
        [ -z "${BIG:-}" ] || [ "${db##*/}" != gpu.db ] || head -c 20971520 "$BIG" >"$db" ;;
esac
END
printf '#!/bin/bash\nexit ${TESTS:-0}\n' >"$pack/device_kernels"
printf '#!/bin/bash\nexit 0\n' >"$pack/device_tables"
chmod +x "$pack"/*
for tool in ncu compute-sanitizer; do
    printf '#!/bin/bash\necho broken; exit 3\n' >"$work/tools/$tool"
    chmod +x "$work/tools/$tool"
done

run() { # CODE [NAME=VALUE..]: what a run with these gives
    local want=$1 got
    shift
    rm -rf "$work/result"
    env PATH=/usr/bin:/bin "$@" "$pack/gpu_check" --run --out "$work/result" --seconds="${seconds:-60}" >"$work/out" 2>&1
    got=$?
    [ $got = "$want" ] || fail "exit $got, not $want: $(cat "$work/out")"
    [ "$(find "$work/result" -type f | wc -l)" -le 6 ] || fail "files: $(ls "$work/result")"
    [ -z "$(find "$work/result" -mindepth 2)" ] || fail "not flat: $(find "$work/result")"
    [ -z "$(find "$work/result" -type f -size +14336k)" ] || fail "size: $(ls -l "$work/result")"
}
report() { grep -qE -- "$1" "$work/result/report.txt" || fail "no '$1' in the report"; }

seconds=9 run 0 HANG=yes
report '^starts: done'
report '^tests device_kernels: done'
report '^compute-sanitizer: not there'
report '^ncu: not there'
report '^gate: failed \(2\), see log.txt'
report '^project: (done|left out)'
report '^gather: true size: (stopped after|left out)'
report '^hash +cuda_reciprocal +tokens=64'
report '132 multiprocessors'
grep -q 'no such luck' "$work/result/log.txt" || fail 'the log lacks what failed'
run 2 TESTS=1 PATH="$work/tools:/usr/bin:/bin" BIG=/dev/zero
report '^tests device_kernels: failed \(1\)'
report '^tests device_tables: done'
report '^compute-sanitizer (memcheck|racecheck), (golden vectors|chain): failed \(3\)'
report '^ncu: bytes of the gather: failed \(3\)'
[ -s "$work/result/traces.tar.gz" ] || fail "no traces: $(ls "$work/result")"
[ -s "$work/result/gpu.db.gz" ] || fail "a large file that can be compressed is lost: $(ls "$work/result")"
run 0 BIG=/dev/urandom
report '^left out: gpu.db.gz is larger'
run 77 DEVICE=no
report '^host: done'
[ ! -e "$work/result/gpu.db" ] || fail 'an empty database'
echo ok
