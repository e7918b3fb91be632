#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# Every example and some tests under IRIS_CHECK=race and, by seeds, under race and weak
# mode: they are silent, and compute what they should. Prints the seconds of all. An
# example with a planted bug is found.
set -u
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/checked.sh"
log=$tmp/out
for variable in $(compgen -e IRIS_); do
    case $variable in *_TEST_LONG | *_BACKEND | *_SIM_DEVICE | *_SPAWN) ;; *) unset "$variable" ;; esac
done
runs=0

one() { # LABEL COMMAND...
    local label=$1
    shift
    runs=$((runs + 1))
    timeout -k 10 300 "$@" >"$log" 2>&1 && ! grep -q 'data race' "$log" && return
    echo "FAILED: $label"
    tail -n 30 "$log"
    failed=1
}

small="--bytes 4004 --iterations 1"
every_example() { # RANKS [SETTING]...
    local program ranks=$1
    shift
    for program in examples/[01]?_*; do
        case ${program##*/} in *[.*]*) continue ;; esac # objects, or no file at all
        # Word splitting is meant: options.
        # shellcheck disable=SC2086
        one "$program, $ranks ranks, $*" env "$@" "./$program" -n "$ranks" $small
    done
}

ranks=2 seeds=1
[ "${IRIS_TEST_LONG:-0}" = 0 ] || ranks="2 3 4" seeds="1 2 3"
for count in $ranks; do
    every_example "$count" IRIS_CHECK=race
    for seed in $seeds; do
        every_example "$count" IRIS_CHECK=race IRIS_SEED="$seed"
        every_example "$count" IRIS_CHECK=weak IRIS_SEED="$seed"
    done
done
[ $runs -gt 0 ] || { echo "FAILED: no examples" && exit 1; }
echo "$runs runs of examples: $SECONDS s"

if [ "${IRIS_TEST_LONG:-0}" != 0 ]; then
    runs=0 SECONDS=0
    for test in device/test_amo device/test_signal device/test_wg queue/test_stream \
        context/test_sync; do
        [ -x "tests/${test%/*}/run" ] || continue # of a build for part of the tests
        one "$test" env -u IRIS_TEST_LONG IRIS_CHECK=race "tests/${test%/*}/run" "${test##*/}"
        # By a seed, hosts that poll or wait for each other's streams are slow.
        case $test in context/* | queue/*) continue ;; esac
        for seed in 1 2; do
            one "$test, seed $seed" env -u IRIS_TEST_LONG IRIS_CHECK=weak IRIS_SEED=$seed \
                "tests/${test%/*}/run" "${test##*/}"
        done
    done
    echo "$runs runs of tests: $SECONDS s"
fi

# The flag of 06_message_passing_load_store releases nothing.
sed 's/IRIS_RELEASE/IRIS_RELAXED/' "$root/examples/06_message_passing_load_store.c" \
    >"$tmp/planted.c"
cmp -s "$tmp/planted.c" "$root/examples/06_message_passing_load_store.c" &&
    echo "FAILED: the example has no release to take away" && failed=1
./iriscc --cpu-only -std=gnu11 -O1 -g -Iinclude -I"$root/include" -I"$root/examples" \
    -L.libs -o "$tmp/planted" "$tmp/planted.c" "$root"/examples/example{,_table}.c || exit 1
# shellcheck disable=SC2086
IRIS_CHECK=race "$tmp/planted" -n 2 $small >"$log" 2>&1 && echo "FAILED: silent" && failed=1
grep -q 'missing: release; change planted.c:[0-9]*' "$log" ||
    { echo "FAILED: the planted bug is not named" && cat "$log" && failed=1; }
exit $failed
