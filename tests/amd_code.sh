#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Compiles device code for AMD GPUs and reads what comes out: that a kernel's
# orders, barriers and copies are the instructions they have to be. Needs no
# GPU. One line for each rule, GPU and compiler; amd/rules.awk has the rules.
# IRIS_TEST_LONG=1 takes each compiler for each GPU.

srcdir=${srcdir:-$(dirname "$0")/..}
srcdir=$(cd "$srcdir" && pwd) || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
. "$srcdir/tests/amd/lib.sh"

amd_headers "$srcdir/device" "$dir/include" || exit 1

# check GPU COMPILER OPTION...
check() {
    local gpu=$1 name label
    shift
    name=$(mktemp -d "$dir/check.XXXXXX")/code
    label="$gpu, $("$@" --version 2>/dev/null |
        sed -n 's/.*\(clang\) version \([0-9]*\).*/\1 \2/p' | head -n 1)"
    amd_kernels "*.h" amd/orders.h amd/protocols.h support/device_api.h >"$name.hip"
    if ! amd_compile "$name" "$dir/include" "$gpu" "$@"; then
        echo "$label: FAILED, does not compile"
        head -40 "$name.log" | cut -c 1-240
        return 1
    fi
    amd_read "$label" "$gpu" "$name.s"
}

if command -v clang-19 >/dev/null 2>&1; then
    amd_later check gfx942 clang-19 $amd_alone
    [ "${IRIS_TEST_LONG-}" != 1 ] ||
        amd_later check gfx90a clang-19 $amd_alone
fi
if command -v hipcc >/dev/null 2>&1; then
    amd_later check gfx90a hipcc
fi
if amd_newest_clang; then
    for gpu in gfx90a gfx942 gfx950; do
        amd_later check $gpu "${amd_newest[@]}"
    done
fi
if [ $amd_count = 0 ]; then
    echo "skipped: neither clang-19 nor hipcc is here"
    exit 77
fi
amd_finish
[ $amd_failed = 0 ]
