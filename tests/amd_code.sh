#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compiles device code for AMD GPUs and reads what comes out: that a kernel's
# orders, barriers and copies are the instructions they have to be. Needs no
# GPU. One line for each rule and GPU; amd/rules.awk has the rules.

srcdir=${srcdir:-$(dirname "$0")/..}
srcdir=$(cd "$srcdir" && pwd) || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
. "$srcdir/tests/amd/lib.sh"

amd_headers "$srcdir/device" "$dir/include" || exit 1
failed=0
checked=0

# check LABEL GPU COMPILER OPTION...
check() {
    label=$1
    gpu=$2
    shift 2
    amd_kernels amd/orders.h amd/protocols.h support/device_api.h \
        >"$dir/$label.hip"
    if ! amd_compile "$dir/$label" "$dir/include" "$gpu" "$@"; then
        echo "$label: FAILED, does not compile with $1"
        head -40 "$dir/$label.log" | cut -c 1-240
        return 1
    fi
    amd_read "$label" "$gpu" "$dir/$label.s"
}

# later CHECK...: on another processor; its lines are shown when it is done.
later() {
    checked=$((checked + 1))
    check "$@" >"$dir/$1.out" 2>&1 &
    jobs="$jobs $!:$1"
}

jobs=
if command -v clang-19 >/dev/null 2>&1; then
    later gfx942 gfx942 clang-19 $amd_alone
fi
if command -v hipcc >/dev/null 2>&1; then
    later gfx90a gfx90a hipcc
elif command -v clang-19 >/dev/null 2>&1; then
    later gfx90a gfx90a clang-19 $amd_alone
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
