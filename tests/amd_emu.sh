#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# Checks that scripts/amd-emu can run: every kernel of the library has cases
# there, and the CPU's version of each kernel runs with their arguments. With
# TINYGRAD and IRIS_TEST_LONG=1 the emulator runs all cases.

srcdir=${srcdir:-$(dirname "$0")/..}

python3 -c 'import sys; assert sys.version_info >= (3, 10)' 2>/dev/null || {
    echo "skipped: no Python 3.10 or later"
    exit 77
}
bash "$srcdir/scripts/amd-emu" --cases || exit 1
if [ -n "${TINYGRAD-}" ] && [ "${IRIS_TEST_LONG-}" = 1 ]; then
    bash "$srcdir/scripts/amd-emu" && bash "$srcdir/scripts/amd-emu" --faults
fi
