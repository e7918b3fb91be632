#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The kernels that fill tensors round products before they add to them, for any
# CFLAGS of the user's: where a compiler may use fused multiply-adds, their code
# has none, and would have some if it were not told.

source=$(sed -n 's/^srcdir = //p' Makefile)/src/tensor/kernels.c
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# What make compiles it with, from the first -D to where dependencies begin.
options=$(${MAKE:-make} -n V=1 -W "$source" src/tensor/kernels.lo \
    CFLAGS='-O2 -mfma' | sed -n 's/.*--mode=compile .* \(-DHAVE_CONFIG_H .*\) -MT .*/\1/p')
[ -n "$options" ] || {
    echo "make does not say how it compiles $source"
    exit 1
}
echo "int x;" >"$dir/x.c"
$CC -mfma -S -o "$dir/x.s" "$dir/x.c" 2>/dev/null || {
    echo "skipped: $CC has no -mfma"
    exit 77
}

# Fused instructions in the code, with further options.
fused() {
    eval "$CC $options $* -S -o '$dir/code.s' '$source'" &&
        grep -cE '^[[:space:]]*vfn?m(add|sub)' "$dir/code.s"
}

allowed=$(fused -ffp-contract=fast)
if [ "$allowed" = 0 ] && $CC --version | grep -q clang; then
    echo "skipped: $CC does as the code says, whatever it may"
    exit 77
fi
has=$(fused)
echo "$has fused instructions, $allowed if they were allowed"
[ "$has" = 0 ] && [ "${allowed:-0}" -gt 0 ]
