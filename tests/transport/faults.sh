#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# Links between nodes that are cut, split and delayed at random bytes
# (fault_shim.c), and processes that are stopped: every value of fault_job.c is
# right, or a call fails. Pretended nodes of this host. IRIS_TEST_LONG=1: 10,000
# cuts and 1,000 stops of up to 10 s.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${MPIRUN=}" "${IRIS_TEST_LONG=0}"
tmp=$(mktemp -d)
failed=0
export TMPDIR=$tmp IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_HEAP_SIZE=16M
export IRIS_TIMEOUT_MS=60000 IRIS_HEAP_BASES_PREFIX=$tmp/job IRIS_NODES=2
export ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-}
pids=()
# shellcheck disable=SC2317 # called by the trap
clean() {
    [ ${#pids[@]} = 0 ] || kill -9 "${pids[@]}" 2>/dev/null
    rm -rf "$tmp"
}
trap clean EXIT

build() {
    # shellcheck disable=SC2086 # the compiler may be a command with options
    ${CC-cc} -O1 -shared -fPIC -o "$tmp/shim.so" "$here/fault_shim.c" -ldl &&
        ./libtool --silent --mode=link --tag=CC ${CC-cc} ${CFLAGS-} -std=gnu11 \
            -I. -Iinclude -I"$here/../../include" -no-install -o "$tmp/job" \
            "$here/fault_job.c" libiris.la -lpthread
}
build || exit 1

start() { # CONTROL RANKS ARGUMENTS...
    pids=()
    rm -f "$tmp"/out*
    for ((rank = 0; rank < $2; rank++)); do
        IRIS_CONTROL=$1 IRIS_RANK=$rank IRIS_NUM_RANKS=$2 IRIS_JOB_ID=faults-$$ \
            LD_PRELOAD=$tmp/shim.so FAULT_LOG=$tmp/cuts \
            timeout -k 5 400 "$tmp/job" "${@:3}" >"$tmp/out$rank" 2>&1 &
        pids+=($!)
    done
}
finish() { # 2 comes before 1
    worst=0
    for pid in "${pids[@]}"; do
        wait "$pid"
        ret=$?
        [ $ret -gt $worst ] && worst=$ret
    done
    pids=()
    return $worst
}
run() {
    start "$@"
    finish
}
check() { # WHAT COMMAND...
    if "${@:2}" >"$tmp/log" 2>&1; then
        echo "passed: $1"
    else
        echo "FAILED: $1" && cat "$tmp/log"
        tail -n 20 "$tmp"/out* 2>/dev/null
        failed=1
    fi
}
never() { # WHAT COMMAND...
    if "${@:2}" >"$tmp/log" 2>&1; then
        echo "FAILED: $1"
        failed=1
    else
        echo "passed: not that $1"
    fi
}

num_cuts() { awk '{n += $1} END {print n + 0}' "$tmp/cuts"; }
# cut_jobs CUTS: jobs of 2 to 4 ranks until there were that many cuts.
cut_jobs() {
    local seed=0 controls=(socket tcp)
    : >"$tmp/cuts"
    while [ "$(num_cuts)" -lt "$1" ]; do
        seed=$((seed + 1))
        FAULT_SEED=$seed FAULT_CUT=$((20000 + seed * 7919 % 200000)) FAULT_SPLIT=5 \
            FAULT_DELAY=1 run "${controls[seed % 2]}" $((2 + seed / 2 % 3)) 20 $seed ||
            { echo "seed $seed, after $(num_cuts) cuts" && return 1; }
    done
}

# short_jobs JOBS: the system may hand over any part of any message, from the
# start of a job to its end.
short_jobs() {
    local seed controls=(socket tcp)
    for ((seed = 1; seed <= $1; seed++)); do
        FAULT_SEED=$seed FAULT_ALL=1 FAULT_SPLIT=33 FAULT_DELAY=1 \
            run "${controls[seed % 2]}" $((2 + seed / 2 % 3)) 2 $seed ||
            { echo "seed $seed" && return 1; }
    done
}

# stop_ranks STOPS MOST_MS: stops random ranks of the running job, which print
# their process ids, then ends it. No call has failed and no value was wrong.
stop_ranks() {
    local i pid ms all ret
    RANDOM=$2
    timeout 30 sh -c 'until grep -hq "is pid" "$1"*; do sleep 0.02; done' sh "$tmp/out" || return 1
    for ((i = 0; i < $1; i++)); do
        mapfile -t all < <(sed -n 's/^rank .* is pid \(.*\)$/\1/p' "$tmp"/out*)
        pid=${all[RANDOM % ${#all[@]}]}
        ms=$((100 + RANDOM % ($2 - 99)))
        kill -STOP "$pid" || break
        sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
        kill -CONT "$pid"
    done
    ! grep -h "^round" "$tmp"/out*
    ret=$?
    kill -TERM "${pids[@]}" 2>/dev/null
    wait "${pids[@]}"
    pids=()
    return $ret
}
# stop_jobs CONTROL STOPS MOST_MS REPEATS
stop_jobs() {
    start "$1" 3 100000 1 "$4"
    stop_ranks "$2" "$3"
}
# The receiver's window is closed for longer than a lost host is waited for.
closed_window() {
    local pid
    start "$1" 2 3 1 60
    timeout 30 sh -c 'until grep -q "is pid" "$1"; do sleep 0.02; done' sh "$tmp/out1" || return 1
    pid=$(sed -n 's/^rank 1 is pid //p' "$tmp/out1")
    kill -STOP "$pid"
    sleep 4.5
    kill -CONT "$pid"
    finish
}
# A link that cannot be resumed: all ranks learn that a rank is lost, long before
# IRIS_TIMEOUT_MS.
lost_link() {
    FAULT_CUT=100000 FAULT_REFUSE=1 run "$1" 3 100000 1
    for rank in 0 1 2; do
        grep -q "^round.*IRIS_ERR_PEER_LOST.*cannot reach" "$tmp/out$rank" || return 1
    done
}
by_mpi() { # ARGUMENTS...
    pids=()
    rm -f "$tmp"/out*
    IRIS_TRANSPORT=mpi-messages timeout -k 5 400 "$MPIRUN" -n 3 --oversubscribe \
        "$tmp/job" "$@" >"$tmp/out" 2>&1 &
    pids+=($!)
}
stop_by_mpi() { # STOPS MOST_MS
    by_mpi 100000 1 3
    stop_ranks "$1" "$2"
}

check "values are right without faults" run socket 3 5 1
check "a receiver that is stopped gets all data by TCP" closed_window tcp
check "all ranks learn of a link that cannot be resumed" lost_link socket
check "all ranks learn of a link that cannot be resumed, by TCP" lost_link tcp
if [ "$IRIS_TEST_LONG" = 1 ]; then
    check "1,000 jobs start, go on and end with shortened reads and writes" short_jobs 1000
    check "10,000 cuts leave every value right" cut_jobs 10000
    for control in socket tcp; do
        check "400 stops leave every value right ($control)" stop_jobs $control 400 10000 3
    done
    [ -z "$MPIRUN" ] || check "200 stops leave every value right (MPI)" stop_by_mpi 200 10000
else
    check "jobs start, go on and end with shortened reads and writes" short_jobs 4
    check "100 cuts leave every value right" cut_jobs 100
    check "stops leave every value right" stop_jobs socket 3 200 3
    [ -z "$MPIRUN" ] || check "stops leave every value right by MPI" stop_by_mpi 2 200
fi
# The planted faults.
FAULT_PLANT=drop FAULT_CUT=100000 never "a resumption that leaves out a byte passes" \
    run tcp 2 20 3
FAULT_PLANT=flip FAULT_CUT=100000 never "a resumption that changes a byte passes" \
    run tcp 2 20 3
exit $failed
