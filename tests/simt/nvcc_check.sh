#!/usr/bin/env bash
# label: slow
# What nvcc makes of every CUDA source, for sm_90a and as PTX for later chips: no warning, no spill, and a table of
# registers, shared memory, spills and the widths of global accesses of each kernel ("16x4": four instructions of 16
# bytes each). Kernels named below fail with a load of another width than listed, or with too few of 16 bytes.
# Arguments: nvcc, the source folder.
set -u
nvcc=$1 source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

compile() {
    local source=$1 name
    name=$(basename "$source" .cu)
    mkdir -p "$work/$name"
    if ! "$nvcc" -std=c++17 -O3 -I"$source_dir" -I"$source_dir/include" \
        -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_90,code=compute_90 \
        -Xptxas -v,-warn-spills,-Werror -Werror all-warnings \
        --keep --keep-dir "$work/$name" -c "$source" -o "$work/$name.o" >"$work/$name.log" 2>&1; then
        echo "FAIL: $name.cu"
        grep -E 'error|warning|spill' "$work/$name.log" | head -20
        failures=1
        return
    fi
    resources "$work/$name.log" >>"$work/resources"
    for ptx in "$work/$name"/*compute_90a.ptx; do accesses "$ptx" >>"$work/accesses"; done
}

# KERNEL REGISTERS SHARED SPILLED, from what ptxas says.
resources() {
    awk '/Compiling entry function/ { split($0, part, "\047"); kernel = part[2] }
         /bytes spill stores/ { spilled = $5 + $9 }
         /Used [0-9]+ registers/ {
             match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
             shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH) + 0 : 0
             print kernel, registers, shared, spilled }' "$1"
}

# KERNEL LOADS STORES, each WIDTHxCOUNT,.. or -. A copy into shared memory is a load.
accesses() {
    awk 'function width(op,    n, type) {
             n = match(op, /\.v[248]\./) ? substr(op, RSTART + 2, 1) : 1
             type = op; sub(/.*\.[a-z]+/, "", type)
             return n * type / 8
         }
         function list(count,    w, text) {
             for (w = 64; w >= 1; w /= 2) if (count[w]) text = text (text ? "," : "") w "x" count[w]
             return text ? text : "-"
         }
         function flush() {
             if (kernel) print kernel, list(loads), list(stores)
             delete loads; delete stores
         }
         /\.entry/ { flush(); kernel = $0; sub(/.*\.entry /, "", kernel); sub(/\(.*/, "", kernel) }
         $1 ~ /^@/ { $1 = ""; $0 = $0 }
         $1 ~ /^ld\.global/ { loads[width($1)]++ }
         $1 ~ /^st\.global/ { stores[width($1)]++ }
         $1 ~ /^cp\.async\..*global/ { n = $0; sub(/.*, /, "", n); loads[n + 0]++ }
         END { flush() }' "$1"
}

table() {
    join <(sort "$work/resources") <(sort "$work/accesses") | c++filt |
        awk 'BEGIN { printf "%9s %7s %7s  %-20s %-20s %s\n", "registers", "shared", "spilled", "loads", "stores", "kernel" }
             { kernel = $0; sub(/ [0-9]+ [0-9]+ [0-9]+ [^ ]+ [^ ]+$/, "", kernel)
               sub(/^void /, "", kernel); sub(/\(.*/, "", kernel)
               printf "%9d %7d %7d  %-20s %-20s %s\n", $(NF - 4), $(NF - 3), $(NF - 2), $(NF - 1), $NF, kernel }'
}

# wide PATTERN LEAST WIDTHS: kernels whose mangled name matches load globally in these widths alone (the first one for
# the data, the others for indices and scales), with at least LEAST of the first.
wide() {
    awk -v pattern="$1" -v least="$2" -v widths="$3" '
        BEGIN { n = split(widths, width, " "); for (i = 1; i <= n; i++) known[width[i]] = 1 }
        $1 ~ pattern {
            kernels++; got = 0
            m = split($2, loads, ",")
            for (i = 1; i <= m; i++) {
                split(loads[i], load, "x")
                if (!(load[1] in known)) { print "FAIL: a load of " load[1] " bytes in " $1; bad = 1 }
                if (load[1] == width[1]) got = load[2]
            }
            if (got < least) { print "FAIL: " got + 0 " loads of " width[1] " bytes in " $1; bad = 1 }
        }
        END {
            if (!kernels) { print "FAIL: no kernel matches " pattern; bad = 1 }
            exit bad
        }' "$work/accesses" || failures=1
}

for source in "$source_dir"/kernels/cuda/*.cu; do
    compile "$source"
done
table
if awk '$4 > 0 { print "FAIL: " $1 " spills " $4 " bytes"; bad = 1 } END { exit !bad }' "$work/resources"; then
    failures=1
fi
# Four rows in flight; ids of 8 bytes, scales of 1 (fp8) or 2 (int4). Rows packed to 264 bytes are aligned to 8.
wide 'eng_gather_kernelILi0ELi16E' 4 "16 8 1"
wide 'eng_gather_kernelILi[12]ELi16E' 4 "16 8"
wide 'eng_gather_kernelILi3ELi16E' 4 "16 8 2"
wide 'eng_gather_kernelILi0ELi8E' 4 "8 1"
wide 'eng_gather_copy_kernelILi16E' 1 "16 8 1"
wide 'eng_gate_held_kernel' 5 "16 1"
# Four rows of weights before the loop and four in it, and tokens; scales of 1 byte.
wide 'eng_project_kernel' 10 "16 1"
wide 'eng_expand_kernel' 1 "16 1"
# Roofs: as many loads in flight as they say, of the tables' and of three runs of bytes and one more.
wide 'eng_rows_roof_kernelILi16ELi(16|8)ELi8E' 8 "16 8 1"
wide 'eng_rows_roof_kernelILi16ELi(16|8)ELi4E' 4 "16 8 1"
wide 'eng_rows_roof_kernelILi8E' 4 "8 1"
wide 'eng_stream_roof_kernel' 16 "16"

[ "$failures" = 0 ] && echo "CUDA sources compile without warnings and spills"
exit "$failures"
