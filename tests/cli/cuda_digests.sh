#!/usr/bin/env bash
# Digests of CUDA kernels are of what nvcc was given: source, headers of this tree, options and version, not of the object,
# in which nvcc names its temporary files. Arguments: the program, the source folder.
set -u
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
mkdir -p "$work/kernels" "$work/build"
printf '#!/bin/sh\ncat "%s/version"\n' "$work" >"$work/nvcc" && chmod +x "$work/nvcc"
echo 'release 1' >"$work/version"
echo kernel >"$work/kernels/a.cu"
echo header >"$work/kernels/a.h"
object=$work/build/a.cu.o
printf '%s : %s \\\n    /usr/include/none.h \\\n    %s\n' "$object" "$work/kernels/a.cu" "$work/kernels/a.h" >"$object.d"
digest() { # OPTIONS
    echo "$RANDOM" >"$object"
    cmake -DOUT="$work/out.c" -DOBJCOPY=objcopy -DSOURCE="$work" -DKERNELS= -DEXPERIMENTS= -DDEVICE="$object" \
        -DNVCC="$work/nvcc" -DNVCC_FLAGS="$1" -P "$source/cmake/objects.cmake" || failures=1
    sed -n 's/.*"a.cu.o", ENG_OBJECT_DEVICE, "\([0-9a-f]*\)".*/\1/p' "$work/out.c"
}
first=$(digest -O3)
[ ${#first} = 64 ] || { echo "FAIL: no digest: $(cat "$work/out.c")"; exit 1; }
[ "$(digest -O3)" = "$first" ] || { echo "FAIL: the object is digested"; failures=1; }
differs() { [ "$(digest "$2")" != "$first" ] || { echo "FAIL: $1 is not digested"; failures=1; }; }
differs options -O2
echo 'other header' >"$work/kernels/a.h" && differs 'a header' -O3
echo header >"$work/kernels/a.h"
echo 'other kernel' >"$work/kernels/a.cu" && differs 'the source' -O3
echo kernel >"$work/kernels/a.cu"
echo 'release 2' >"$work/version" && differs "nvcc's version" -O3
exit $failures
