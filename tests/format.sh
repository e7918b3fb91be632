#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# Checks that clang-format 14 has nothing to change.
cd "$(dirname "$0")/.." || exit 1
tool=clang-format-14
command -v $tool || tool=clang-format
$tool --version 2>&1 | grep ' 14\.' || {
    echo "skipped: no clang-format 14"
    exit 77
}
find . -path ./build -prune -o -path './.*' -prune -o -type f \( -name '*.[ch]' -o -name '*.cpp' \
    -o -name '*.hip' \) -print0 | grep -zvE '^\./[^/]*$|/include/iris/version\.h$' |
    xargs -0 -P 2 -n 100 $tool --dry-run -Werror
