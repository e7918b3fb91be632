#!/bin/bash
# SPDX-License-Identifier: MIT
#
# How iriscc cuts sources, with random ones: fuzz_iriscc.sh SECONDS [SEED
# [SOURCES]], at most so many of them. Seeds count up from SEED. libFuzzer is of no use here: what cuts is awk, whose paths
# it does not see, and any bytes at all are no oracle. So a generator makes C
# and knows what has to be left.
set -u
export LC_ALL=C
srcdir=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:?SECONDS} seed=${2:-$RANDOM$RANDOM} sources=${3:-1000000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The function of the script that is tested, by itself.
sed -n '/^kernels_only() {/,/^}/p' "$srcdir/tools/iriscc.in" >"$dir/cut.sh"
# shellcheck source=/dev/null
. "$dir/cut.sh" && command -v kernels_only >/dev/null || exit 1

first=$seed
while [ $SECONDS -lt "$seconds" ] && [ $((seed - first)) -lt "$sources" ]; do
    awk -v seed="$seed" -v source="$dir/source.c" -v expected="$dir/expected.c" \
        -f "$srcdir/tests/fuzz/fuzz_iriscc.awk" || exit 1
    kernels_only "$dir/source.c" >"$dir/cut.c" || exit 1
    if ! cmp -s "$dir/expected.c" "$dir/cut.c"; then
        line=$(diff "$dir/expected.c" "$dir/cut.c" |
            sed -n '1s/^\([0-9]*\).*/\1/p')
        echo "FAILED: seed $seed, line $line: expected (<) and left (>)"
        diff "$dir/expected.c" "$dir/cut.c" | head -n 20
        echo "of this source:"
        sed -n "$((line > 8 ? line - 8 : 1)),$((line + 8))p" "$dir/source.c"
        exit 1
    fi
    seed=$((seed + 1))
done
echo "passed: $((seed - first)) sources of 200 definitions, seeds from $first"
