#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources first
#
# Compiles device code for AMD GPUs and reads the result: a kernel's orders,
# barriers and copies must be the right instructions. It needs no GPU. It prints
# one line for each rule, GPU and compiler; amd/rules.awk has the rules. With
# IRIS_TEST_LONG=1 it uses each compiler for each GPU, and hipcc for all of the code.

srcdir=${srcdir:-$(dirname "$0")/..}
srcdir=$(cd "$srcdir" && pwd) || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
. "$srcdir/tests/amd/lib.sh"

amd_headers "$srcdir/device" "$dir/include" || exit 1

narrow=(ccl_{reduce,matrix,move,near,packet,unordered,pairs} fill random matmul
    ccl_{wg,tile})

# check WHAT GPU COMPILER OPTION...: `all`; `calls`, all but the library's kernels of
# many types; `traced`, the library's kernels that record what they do; `narrow`, the
# library's for one type each; or `batch`, one of at most 256 lanes.
check() {
    local what=$1 gpu=$2 name label options=() rules=()
    shift 2
    name=$(mktemp -d "$dir/check.XXXXXX")/code
    label="$gpu, $("$@" --version 2>/dev/null |
        sed -n 's/.*\(clang\) version \([0-9]*\).*/\1 \2/p' | head -n 1)"
    if [ "$what" = calls ]; then
        amd_kernels "[bs]*.h" amd/orders.h amd/protocols.h support/device_api.h
        options=(-DAPI_LONG=0)
    elif [ "$what" = all ]; then
        amd_kernels "*.h" amd/orders.h amd/protocols.h support/device_api.h
        rules=(-v all=1)
        options=(-DAPI_LONG="${IRIS_TEST_LONG:-0}")
    elif [ "$what" = batch ]; then
        echo '#include <amd/narrow.h>'
        options=(-DIRIS_MAX_LANES=256 -DAMD_NARROW_ccl_batch)
        label+=" batch"
    elif [ "$what" = traced ]; then
        amd_kernels "[bs]*.h"
        echo '#include <amd/narrow.h>'
        options=(-DIRIS_TRACE=1 "${narrow[@]/#ccl/-DAMD_NARROW_ccl}")
        options=("${options[@]:0:6}")
        rules=(-v traced=1)
        label+=" traced"
    else
        echo '#include <amd/narrow.h>'
        options=("${narrow[@]/#/-DAMD_NARROW_}")
        label+=" narrow"
    fi >"$name.hip"
    if ! amd_compile "$name" "$dir/include" "$gpu" "$@" "${options[@]}"; then
        echo "$label: FAILED, does not compile"
        head -40 "$name.log" | cut -c 1-240
        return 1
    fi
    amd_read "$label" "$gpu" "$name.s" "${rules[@]}"
}

if command -v clang-19 >/dev/null 2>&1; then
    amd_later check calls gfx942 clang-19 "${amd_alone[@]}"
    amd_later check traced gfx942 clang-19 "${amd_alone[@]}"
    amd_later check batch gfx942 clang-19 "${amd_alone[@]}"
    # As the newest clang is called, so that it is seen if that cannot work.
    amd_later check narrow gfx942 clang-19 "${amd_alone[@]}" \
        -isystem "$(clang-19 -print-resource-dir)/include"
    if [ "${IRIS_TEST_LONG-}" = 1 ]; then
        amd_later check all gfx942 clang-19 "${amd_alone[@]}"
        amd_later check narrow gfx950 clang-19 "${amd_alone[@]}"
        amd_later check all gfx90a clang-19 "${amd_alone[@]}"
        amd_later check traced gfx90a clang-19 "${amd_alone[@]}"
        amd_later check batch gfx90a clang-19 "${amd_alone[@]}"
    fi
fi
if command -v hipcc >/dev/null 2>&1; then
    # The phase amd compiles the library's kernels for the same GPU.
    what=calls
    [ "${IRIS_TEST_LONG-}" != 1 ] || what=all
    amd_later check $what gfx90a hipcc
fi
if amd_newest_clang; then
    for gpu in gfx90a gfx942 gfx950 gfx1250; do
        amd_later check all $gpu "${amd_newest[@]}"
        amd_later check traced $gpu "${amd_newest[@]}"
        amd_later check batch $gpu "${amd_newest[@]}"
    done
fi
if [ $amd_count = 0 ]; then
    echo "skipped: neither clang-19 nor hipcc is here"
    exit 77
fi
amd_finish
[ $amd_failed = 0 ]
