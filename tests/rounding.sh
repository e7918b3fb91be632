#!/bin/sh
# SPDX-License-Identifier: MIT
# inputs: build
#
# The kernels that fill tensors and multiply matrices round products before they
# add them, for any CFLAGS of the user. Where a compiler may use fused
# multiply-adds, their code has none of them; without the flag that forbids them
# it would have some.

top=$(sed -n 's/^srcdir = //p' Makefile)
. "$(dirname "$0")/support/script.sh"

echo "int x;" >"$tmp/x.c"
$CC -mfma -S -o "$tmp/x.s" "$tmp/x.c" 2>/dev/null || {
    echo "skipped: $CC has no -mfma"
    exit 77
}

# Fused instructions in the code of $source, with further options.
fused() {
    eval "$CC $options $* -S -o '$tmp/code.s' '$source'" &&
        grep -cE '^[[:space:]]*vfn?m(add|sub)' "$tmp/code.s"
}

# check OBJECT: sets $allowed.
check() {
    source=$top/$1.c
    # What make compiles it with, from the first -D to where dependencies begin.
    options=$(${MAKE:-make} -n V=1 -W "$source" "$1.lo" CFLAGS='-O2 -mfma' |
        sed -n 's/.*--mode=compile .* \(-DHAVE_CONFIG_H .*\) -MT .*/\1/p')
    [ -n "$options" ] || {
        echo "make does not say how it compiles $source"
        return 1
    }
    allowed=$(fused -ffp-contract=fast)
    # Those that the code asks for: linspace's, which are PyTorch's.
    asked=$(fused -ffp-contract=off)
    has=$(fused)
    echo "$1: $has fused instructions, $asked asked for, $allowed if allowed"
    [ "$has" = "$asked" ] && allowed=$((allowed - asked))
}

for object in src/tensor/tensor_kernels src/ops/ops_kernels; do
    check $object || exit 1
    [ "${allowed:-0}" -gt 0 ] || {
        echo "skipped: $CC does as the code says, whatever it may"
        $CC --version | grep -q clang && exit 77
        exit 1
    }
done
