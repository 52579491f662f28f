#!/usr/bin/env bash
# label: slow
# Every CUDA source compiles for sm_90a and as PTX for later chips, without a warning or a spill; and
# the kernels named for 16-byte loads have them.
# Arguments: nvcc, the source folder.
set -u
nvcc=$1 source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

check() {
    local source=$1 name
    name=$(basename "$source" .cu)
    mkdir -p "$work/$name"
    if ! "$nvcc" -std=c++17 -O3 -I"$source_dir" -I"$source_dir/include" \
        -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_90,code=compute_90 \
        -Xptxas -v,-warn-spills,-Werror -Werror all-warnings \
        --keep --keep-dir "$work/$name" -c "$source" -o "$work/$name.o" >"$work/$name.log" 2>&1; then
        echo "FAIL: $name.cu"
        grep -E 'error|warning|spill' "$work/$name.log" | head -20
        return 1
    fi
    # One line a kernel: registers, shared memory, spills.
    awk '/Compiling entry function/ { split($0, part, "\047"); kernel = part[2] }
         /bytes spill stores/ { spills = $5 + $9 }
         /Used [0-9]+ registers/ {
             registers = $0; sub(/.*: /, "", registers); print kernel ": " registers ", spilled " spills }
        ' "$work/$name.log"
    if grep -q 'bytes spill' "$work/$name.log" && grep 'bytes spill' "$work/$name.log" |
        grep -qv ' 0 bytes spill stores, 0 bytes spill loads'; then
        echo "FAIL: $name.cu spills registers"
        return 1
    fi
}

for source in "$source_dir"/kernels/cuda/*.cu; do
    check "$source" || failures=1
done

# wide PTX PATTERN: each kernel whose name matches has a 16-byte load, the decoding ones of IN_FLIGHT.
wide() {
    awk -v pattern="$2" '
        /\.entry/ { kernel = ""; if ($0 ~ pattern) { kernel = $0; kernels++; loads[kernel] = 0 } }
        kernel != "" && /ld\.global[^ ]*\.v4/ { loads[kernel]++ }
        END {
            if (!kernels) { print "FAIL: no kernel matches " pattern; exit 1 }
            for (k in loads) if (loads[k] < 1) { print "FAIL: no 16-byte load in " k; bad = 1 }
            exit bad
        }' "$1" || failures=1
}
ptx=("$work"/gather_decode/*.ptx)
wide "${ptx[0]}" 'eng_gather_kernelILi[0-9]ELi16E'
wide "${ptx[0]}" 'eng_gather_copy_kernelILi16E'
ptx=("$work"/gate_onepass/*.ptx)
wide "${ptx[0]}" 'eng_gate_held_kernel'

[ "$failures" = 0 ] && echo "CUDA sources compile without warnings and spills"
exit "$failures"
