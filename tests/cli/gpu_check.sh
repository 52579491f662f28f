#!/bin/bash
# scripts/gpu_check: options, and what it says where its program is not.
set -u
source=$2
check=$source/scripts/gpu_check
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; exit 1; }
expect() { # CODE WORDS COMMAND...
    local want=$1 words=$2 got
    shift 2
    "$@" >"$work/out" 2>&1
    got=$?
    [ $got = "$want" ] || fail "exit $got, not $want: $* ($(cat "$work/out"))"
    grep -q -- "$words" "$work/out" || fail "no '$words' in: $(cat "$work/out")"
}
expect 0 'gpu_check --pack' bash "$check" --help
expect 1 "unknown option '--runs'" bash "$check" --runs
expect 1 '--pack or --run' bash "$check"
expect 1 '--out wants a folder' bash "$check" --run --out
expect 1 'wants --out' bash "$check" --run
expect 1 'whole number' bash "$check" --run --out "$work/o" --seconds=soon
expect 7 'no program beside' bash "$check" --run --out "$work/o"
mkdir "$work/thesis" && : >"$work/thesis/text"
expect 1 'no pack and not empty' bash "$check" --pack="$work/thesis"
[ -e "$work/thesis/text" ] || fail 'a folder that is no pack is gone'

# The report, with a program that answers as on a device.
mkdir -p "$work/pack" && cp "$check" "$work/pack/gpu_check"
cat >"$work/pack/engram" <<'END'
#!/bin/bash
case $1 in
    run) echo "$*" >>"$ASKED"; echo 'device: L2 60 MiB, pinned tables 6336 to 6336 MiB; SM at 1980 to 1980 MHz'
         while [ $# -gt 0 ]; do [ "$1" = --db ] && : >"$2"; shift; done ;;
    doctor) echo 'device: NVIDIA H200, 132 multiprocessors' ;;
    export) cat "$POINTS" ;;
esac
END
printf '#!/bin/sh\nexit 0\n' >"$work/pack/device_kernels"
# Two launches counted as ncu writes them, the program's own lines among them.
mkdir -p "$work/tools"
cat >"$work/tools/ncu" <<'END'
#!/bin/bash
echo "ncu $*" >>"$ASKED.ncu"
while [ "$1" != --log-file ]; do shift; done
cat >"$2" <<'CSV'
==PROF== Connected to process 7
"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","eng_gather_kernel(GatherJob)","Command line profiler metrics","dram__bytes_read.sum","byte","30,000,000"
"0","eng_gather_kernel(GatherJob)","Command line profiler metrics","lts__t_sectors_op_read.sum","sector","900,000"
"0","eng_gather_kernel(GatherJob)","Command line profiler metrics","lts__t_sectors_op_write.sum","sector","1,572,864"
"1","eng_gather_kernel(GatherJob)","Command line profiler metrics","dram__bytes_read.sum","byte","32,000,000"
"1","eng_gather_kernel(GatherJob)","Command line profiler metrics","lts__t_sectors_op_read.sum","sector","918,624"
"1","eng_gather_kernel(GatherJob)","Command line profiler metrics","lts__t_sectors_op_write.sum","sector","1,572,864"
CSV
END
chmod +x "$work/tools/ncu"
chmod +x "$work/pack/engram" "$work/pack/device_kernels"
cat >"$work/points" <<'END'
run_id,experiment,backend,tokens,layers,table_at,graph,variant,is_roof,outcome,percent_of_roof,cpu_us,logical_bytes,line_bytes,output_bytes
1,gather,cuda,4096,,local,off,cuda_decode,0,measured,91.2,40,25952256,31000000,50331648
1,gather,cuda,4096,,local,off,cuda_roof_t2,1,measured,100,36
1,gather,cuda,8192,,local,off,cuda_decode,0,measured,88.5,80
1,gather,cuda,64,,local,off,cuda_decode,0,measured,60,8
1,gather,cuda,1,,pinned,on,cuda_decode,0,measured,,5.2
1,gather,cuda,4,,pinned,on,cuda_decode,0,measured,,5.9
1,gather,cuda,4,,pinned,off,cuda_decode,0,measured,,9
1,hash,cuda,4096,all,,on,cuda_reciprocal,0,measured,,6.5
1,gate,cuda,4096,,,on,cuda_onepass,0,measured,84.9,400
1,gate,cpu,4096,,,off,avx2,0,measured,20,9000
1,project,cuda,1,,,on,cuda_mma,0,failed,,
END
ASKED=$work/asked POINTS=$work/points PATH=$work/tools:$PATH bash "$work/pack/gpu_check" --run --out "$work/report" --seconds=100 >"$work/out" 2>&1 ||
    fail "report: $(cat "$work/out")"
for line in 'gather of 4,096 tokens and more at least 85 % of its roof: 88.5 % of its roof, met' \
    'gather of 1 to 4 tokens from pinned memory at most 6 us: 5.9 us, met' \
    'hash of all layers, 4,096 tokens at most 5 us: 6.5 us, MISSED' \
    'gate of 4,096 tokens at least 85 % of copying: 84.9 % of copying, MISSED' \
    'up to 8 tokens at least 80 % of reading the weights: not measured' \
    'bytes: sectors read: counted 29.1 MB, model 29.1 MB, ratio 1.000' \
    'bytes: sectors stored: counted 50.33 MB, model 50.33 MB, ratio 1.000' \
    'bytes: read from memory: counted 31 MB, model 31 MB, ratio 1.000' \
    'bytes: stored to memory: not counted' \
    'pinned tables 6336 to 6336 MiB; SM at 1980' '132 multiprocessors'; do
    grep -q -- "$line" "$work/report/report.txt" || fail "no '$line' in $(cat "$work/report/report.txt")"
done
[ -e "$work/report/gpu.db" ] || fail "no database: $(ls "$work/report")"
ASKED=$work/again POINTS=$work/points expect 1 'is not empty' bash "$work/pack/gpu_check" --run --out "$work/report"
[ -e "$work/report/gpu.db" ] && [ ! -e "$work/again" ] || fail 'a second visit wrote over the first'
grep -q 'gather .*rows=16000000.*table_at=made' "$work/asked" || fail "no true size: $(cat "$work/asked")"
grep -q -- '--clock-control none' "$work/asked.ncu" || fail 'ncu would set the clocks'
# What it asks for are experiments, axes and values of the program.
engram=$1
while read -r asked; do
    # shellcheck disable=SC2086
    set -- $asked
    arguments=()
    while [ $# -gt 0 ]; do
        case $1 in --db) shift ;; --trace) ;; *) arguments+=("$1") ;; esac
        shift
    done
    "$engram" "${arguments[@]}" --dry-run >"$work/dry" 2>&1
    case $? in 0 | 5 | 77) ;; *) fail "$asked: $(tail -2 "$work/dry")" ;; esac
done <"$work/asked"
echo ok
