#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The device matrix under mpirun, with 1, 2, 4 and 8 ranks.
set -u
tests="test_rma test_amo test_amo_words test_amo_race test_amo_flood test_wg
    test_lanes test_signal test_sync"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
ran=0 failed=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

if [ -z "${MPIRUN-}" ] || ! grep -q '^#define HAVE_MPI 1' config.h; then
    echo "skipped: no mpirun, or a library without MPI"
    exit 77
fi
for test in $tests; do
    [ -x "tests/$test" ] || continue
    for count in 1 2 4 8; do
        ran=$((ran + 1))
        if timeout -k 10 300 "$MPIRUN" --oversubscribe -n $count \
            "tests/$test" >"$log" 2>&1; then
            echo "passed: $test, $count by mpirun"
        else
            echo "FAILED ($?): $test, $count by mpirun"
            tail -n 40 "$log"
            failed=$((failed + 1))
        fi
    done
done
[ $ran != 0 ] || exit 77
echo "$ran runs, $failed failed"
[ $failed = 0 ]
