#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# Checks that shellcheck has nothing to say of the scripts. Left out: that A && B || C is
# no if, that words split, and where they come from, that functions are called by name,
# that programs for other shells and awk have dollars and backslashes in quotes.
cd "$(dirname "$0")/.." || exit 1
command -v shellcheck || {
    echo "skipped: no shellcheck"
    exit 77
}
{
    find . -path './build*' -prune -o -path './.*' -prune -o -type f -name '*.sh' -print
    grep -rlE '^#!.*sh$|^# shellcheck shell' .ci scripts tests/support tools/*.in
} | sort -u | xargs -P 2 -n 10 shellcheck -x -P SCRIPTDIR \
    -e SC1003,SC2013,SC2015,SC2016,SC2086,SC2317
