#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compiles device code for AMD GPUs and reads what comes out: that a kernel's
# orders, barriers and copies are the instructions they have to be. Needs no
# GPU. One line for each rule and GPU; amd_code.awk has the rules.

srcdir=${srcdir:-$(dirname "$0")/..}
srcdir=$(cd "$srcdir" && pwd) || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# The headers as they are installed, whether or not configure has run.
mkdir -p "$dir/include/iris" &&
    ln -s "$srcdir/device" "$dir/include/iris/device" || exit 1
{
    echo '#include "amd_code.h"'
    echo '#include "support/device_api.h"'
    for header in "$srcdir"/device/kernels/*.h; do
        echo "#include <iris/device/kernels/${header##*/}>"
    done
} >"$dir/code.hip"

failed=0
checked=0

# check GPU COMPILER OPTION...
check() {
    gpu=$1
    shift
    if ! "$@" -x hip --offload-arch="$gpu" --cuda-device-only -std=c++20 -O3 \
        -DIRIS_I_IMAGE=1 -I"$dir/include" -I"$srcdir/include" \
        -I"$srcdir/tests" -S -o "$dir/$gpu.s" "$dir/code.hip" \
        >"$dir/$gpu.log" 2>&1; then
        echo "$gpu: FAILED, does not compile with $1"
        head -40 "$dir/$gpu.log" | cut -c 1-240
        return 1
    fi
    awk -v gpu="$gpu" -f "$srcdir/tests/amd_code.awk" "$dir/$gpu.s"
}

# later CHECK...: on another processor; its lines are shown when it is done.
later() {
    checked=$((checked + 1))
    check "$@" >"$dir/$1.out" 2>&1 &
    jobs="$jobs $!:$1"
}

alone='-nogpulib --rocm-path=/usr --hip-path=/usr' # clang without ROCm
jobs=
if command -v clang-19 >/dev/null 2>&1; then
    later gfx942 clang-19 $alone
fi
if command -v hipcc >/dev/null 2>&1; then
    later gfx90a hipcc
elif command -v clang-19 >/dev/null 2>&1; then
    later gfx90a clang-19 $alone
fi
if [ $checked = 0 ]; then
    echo "skipped: neither clang-19 nor hipcc is here"
    exit 77
fi
for job in $jobs; do
    wait "${job%%:*}" || failed=1
    cat "$dir/${job#*:}.out"
done
exit $failed
