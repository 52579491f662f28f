#!/bin/bash
# label: nightly
# scripts/gpu_check: packs with nvcc within 30 MiB, and the pack runs alone up to the first device step. skips: no nvcc
set -u
source=$2
[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] || { echo 'skipped: no nvcc'; exit 77; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; exit 1; }
GPU_CHECK_JOBS=2 bash "$source/scripts/gpu_check" --pack="$work/pack" --build="$work/build" >"$work/out" 2>&1 ||
    fail "pack: $(cat "$work/out")"
[ "$(grep -c ENG_OBJECT_DEVICE "$work/build/generated/objects.c")" = "$(ls "$source"/kernels/cuda/*.cu | wc -l)" ] ||
    fail "digests of code leave CUDA kernels out"
[ "$(du -sk "$work/pack" | cut -f1)" -le 30720 ] || fail "size: $(du -sk "$work/pack")"
rm -rf "$work/build"
env -i PATH="$PATH" HOME="$work" "$work/pack/gpu_check" --run --out "$work/result" >"$work/out" 2>&1
code=$?
[ -e /dev/nvidiactl ] || [ $code = 77 ] || fail "exit $code: $(cat "$work/out")"
for line in '^starts: done' '^host: done' '^tests device_kernels: '; do
    grep -q "$line" "$work/result/report.txt" || fail "no $line in $(cat "$work/result/report.txt")"
done
[ "$(find "$work/result" -type f | wc -l)" -le 6 ] || fail "files: $(ls "$work/result")"
[ -z "$(find "$work/result" -type f -size +14336k)" ] || fail "size: $(ls -l "$work/result")"
echo ok
