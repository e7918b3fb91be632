#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The device matrix with ranks that are processes: children of one test, then
# separate processes that meet by environment, 1, 2, 4 and 8 of them.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tests="test_rma test_amo test_amo_words test_amo_race test_amo_flood test_wg
    test_lanes test_signal test_sync"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
ran=0 failed=0

one() { # LABEL COMMAND...
    local label=$1
    shift
    ran=$((ran + 1))
    if timeout -k 10 300 "$@" >"$log" 2>&1; then
        echo "passed: $label"
    else
        echo "FAILED ($?): $label"
        tail -n 40 "$log"
        failed=$((failed + 1))
    fi
}

for test in $tests; do
    [ -x "tests/$test" ] || continue
    one "$test, child processes" env IRIS_SPAWN=processes "tests/$test"
    for count in 1 2 4 8; do
        one "$test, $count by environment" \
            "$here/../scripts/launch-env" -n $count "tests/$test"
    done
done
[ $ran != 0 ] || exit 77
echo "$ran runs, $failed failed"
[ $failed = 0 ]
