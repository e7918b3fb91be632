#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build first
#
# Runs the tests of ranks in the other ways of making ranks: child processes,
# processes that meet by environment, processes under mpirun, and with the
# control plane over sockets. (`make check` runs them with rank threads.)
set -u
: "${TEST_WRAPPER=}" "${MPIRUN=}"
# Once ranks have found each other it is all one who made them. In the short run matrix
# tests have child processes, and a sample has the other ways. IRIS_TEST_MATRIX=all has
# all.
matrix_env_counts="" env_counts=4 mpi_counts="" limit=300 all=0
if [ "${IRIS_TEST_LONG-}" = 1 ] || [ "${IRIS_TEST_MATRIX-}" = all ]; then
    matrix_env_counts="1 2 4 8" env_counts="1 2 4 8" mpi_counts="1 2 4 8"
    limit=3600 all=1
fi
. "$(dirname "$0")/support/script.sh"
log=$tmp/out
export TMPDIR=$tmp # two mpiruns that share a folder get in each other's way

tests_of() { # KIND [WORD]: those whose programs are built
    local folder file kind
    for folder in tests/*/run; do
        [ -x "$folder" ] || continue
        "$folder" --list | grep -v '^ ' | while read -r file kind; do
            [[ "$kind," != "$1,"* || " $kind," != *" ${2-$1},"* ]] ||
                echo "${folder%/run}/$file"
        done
    done
}

one() { # LABEL COMMAND...
    local label=$1 ret
    shift
    timeout -k 10 $limit "$@" >"$log" 2>&1
    ret=$?
    if [ $ret = 77 ]; then
        echo "left out: $label"
    else
        verdict "$label" $ret
    fi
}

run() { # CHILDREN ENV-COUNTS MPI-COUNTS TEST...
    local children=$1 all_env_counts=$2 all_mpi_counts=$3
    local env_counts mpi_counts test count
    shift 3
    # Word splitting is meant: counts, and a wrapper with its options.
    # shellcheck disable=SC2086
    for test in "$@"; do
        env_counts=$all_env_counts mpi_counts=$all_mpi_counts
        case $test in
        */test_mismatch) env_counts=3 mpi_counts=3 ;; # all it has
        */test_stray) mpi_counts=${mpi_counts:-4} ;;
        */test_sync) env_counts="1 2 4 8" mpi_counts="1 2 4 8" ;;
        */test_heap) env_counts="$env_counts 3" ;;
        */test_collectives | */test_amo | */test_trace)
            env_counts=${env_counts:-4} mpi_counts=${mpi_counts:-4}
            ;;
        esac
        [ $children = 0 ] || one "$test, child processes" \
            env IRIS_SPAWN=processes $TEST_WRAPPER ./${test%/*}/run ${test##*/}
        for count in $env_counts; do
            one "$test, $count by environment" \
                ./iris run -n $count $TEST_WRAPPER ./${test%/*}/run ${test##*/}
        done
        [ -n "$MPIRUN" ] || continue
        for count in $mpi_counts; do
            one "$test, $count by mpirun" \
                "$MPIRUN" --oversubscribe -n $count $TEST_WRAPPER ./${test%/*}/run ${test##*/}
        done
    done
}

# Two nodes of this host, between which the control plane carries calls.
run_nodes() { # TEST...
    local test count
    for test in "$@"; do
        count=4
        [ "${test##*/}" != test_mismatch ] || count=3
        # shellcheck disable=SC2086
        one "$test, $count on two nodes" env IRIS_NODES=2 \
            ./iris run -n $count $TEST_WRAPPER ./${test%/*}/run ${test##*/}
            # shellcheck disable=SC2086
        one "$test, $count on two nodes by TCP" env IRIS_NODES=2 \
            IRIS_ROOT=127.0.0.1:$((20000 + $$ % 10000)) \
            ./iris run -n $count $TEST_WRAPPER ./${test%/*}/run ${test##*/}
    done
}

matrix_tests=$(tests_of matrix)
if [ $all = 1 ]; then rank_tests=$(tests_of rank); else rank_tests=$(tests_of rank sample); fi
[ -n "$rank_tests$matrix_tests" ] || exit 77
# shellcheck disable=SC2086
run 1 "$matrix_env_counts" "$mpi_counts" $matrix_tests
# shellcheck disable=SC2086
run $all "$env_counts" "$mpi_counts" $rank_tests
if [ $all = 1 ]; then
    # shellcheck disable=SC2086
    run_nodes $matrix_tests $rank_tests
else
    for test in control/test_mismatch context/test_contexts context/test_groups; do
        [ ! -x tests/${test%/*}/run ] || run_nodes tests/$test
    done
fi
# Ranks that meet at rank 0's IPv6 address, and connect there.
by_ipv6() { # TEST
    local port=$((20000 + $$ % 10000))
    # shellcheck disable=SC2086
    one "$1, 4 at [::1]:$port" env IRIS_NODES=2 IRIS_ROOT="[::1]:$port" \
        ./iris run -n 4 $TEST_WRAPPER ./${1%/*}/run ${1##*/}
}
if [ -x tests/transport/run ] && grep -q ' lo$' /proc/net/if_inet6 2>/dev/null; then
    by_ipv6 tests/transport/test_far
fi

# Ranks of several nodes, whose proxies pass messages by MPI. The puts of pt2pt
# are not there before the flush, even on one machine.
by_mpi() { # TRANSPORT VARIABLE=VALUE...
    local test
    for test in far far_order; do
        # shellcheck disable=SC2086
        one "tests/transport/test_$test, 4 with IRIS_TRANSPORT=$*" env "${@:2}" \
            IRIS_TRANSPORT="$1" "$MPIRUN" --oversubscribe -n 4 $TEST_WRAPPER ./tests/transport/run test_$test
    done
}
if [ -n "$MPIRUN" ] && [ -x tests/transport/run ] && ./iris info | grep -q '^ *MPI *built in'; then
    by_mpi mpi OMPI_MCA_osc=pt2pt
    if [ $all = 1 ]; then
        by_mpi mpi
        by_mpi mpi OMPI_MCA_btl=self,tcp
        by_mpi mpi-messages
    fi
fi
# The same by UCX, which needs no launcher of its own.
by_ucx() { # VARIABLE=VALUE...
    local test
    for test in far far_order; do
        # shellcheck disable=SC2086
        one "tests/transport/test_$test, 4 with IRIS_TRANSPORT=ucx $*" env "$@" IRIS_NODES=4 \
            IRIS_TRANSPORT=ucx ./iris run -n 4 $TEST_WRAPPER ./tests/transport/run test_$test
    done
}
if [ -x tests/transport/run ] && ./iris info | grep -q '^ *UCX *built in'; then
    by_ucx UCX_TLS=tcp
    [ $all = 0 ] || by_ucx UCX_TLS=shm,self,tcp
fi
[ $failed = 0 ]
