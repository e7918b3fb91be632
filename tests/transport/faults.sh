#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu waits
#
# Links between nodes that are cut, split and delayed at random bytes
# (fault_shim.c), and processes that are stopped: every value of fault_job.c is
# right, or a call fails. Pretended nodes of this host. IRIS_TEST_LONG=1: 10,000
# cuts and 1,000 stops of up to 10 s.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${MPIRUN=}" "${IRIS_TEST_LONG=0}"
# shellcheck source=tests/support/jobs.sh
. "$here/../support/jobs.sh"
export IRIS_NODES=2
export ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-}

# shellcheck disable=SC2086 # the compiler may be a command with options
${CC-cc} -O1 -shared -fPIC -o "$tmp/shim.so" "$here/fault_shim.c" -ldl &&
    link "$tmp/job" "$here/fault_job.c" || exit 1

limit=400
# Connects the nodes by local sockets or by TCP.
start() { # unix|tcp RANKS ARGUMENTS...
    pids=()
    unset IRIS_ROOT
    [ "$1" = unix ] || export IRIS_ROOT=127.0.0.1:$((20000 + BASHPID % 10000))
    rm -f "$tmp"/out*
    for ((rank = 0; rank < $2; rank++)); do
        IRIS_JOB_ID=$tag-${tmp##*/} LD_PRELOAD=$tmp/shim.so FAULT_LOG=$tmp/cuts \
            start_rank $rank "$2" timeout -k 5 $limit "$tmp/job" "${@:3}"
    done
}
run() {
    start "$@"
    finish
}
num_cuts() { awk '{n += $1} END {print n + 0}' "$tmp/cuts"; }
# cut_jobs CUTS: jobs of 2 to 4 ranks until there were that many cuts.
cut_jobs() {
    local seed=0 controls=(unix tcp)
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
    local seed controls=(unix tcp)
    for ((seed = 1; seed <= $1; seed++)); do
        FAULT_SEED=$seed FAULT_ALL=1 FAULT_SPLIT=33 FAULT_DELAY=1 \
            run "${controls[seed % 2]}" $((2 + seed / 2 % 3)) 2 $seed ||
            { echo "seed $seed" && return 1; }
    done
}

# stop_ranks STOPS DOUBLINGS: stops random ranks of the running job, which print
# their process ids, for 0.1 s and up to that many times doubled; then ends the job.
# No call has failed and no value was wrong.
stop_ranks() {
    local i pid ms all ret=0
    RANDOM=$1
    timeout 30 sh -c 'until grep -hq "is pid" "$1"*; do sleep 0.02; done' sh "$tmp/out" || return 1
    for ((i = 0; i < $1; i++)); do
        mapfile -t all < <(sed -n 's/^rank .* is pid \(.*\)$/\1/p' "$tmp"/out*)
        pid=${all[RANDOM % ${#all[@]}]}
        ms=$(((100 + RANDOM % 57) << RANDOM % ($2 + 1)))
        kill -STOP "$pid" || { echo "the job ended before stop $i" && return 1; }
        sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
        kill -CONT "$pid"
        sleep 0.1 # the job plays rounds
    done
    kill -0 "${pids[@]}" && ! grep -h "^round" "$tmp"/out* || ret=1
    kill -TERM "${pids[@]}" 2>/dev/null
    wait "${pids[@]}"
    pids=()
    return $ret
}
# stop_jobs unix|tcp STOPS DOUBLINGS REPEATS
stop_jobs() {
    IRIS_TIMEOUT_MS=600000 start "$1" 3 -1 1 "$4"
    stop_ranks "$2" "$3"
}
# The receiver's window is closed for longer than a lost host is waited for.
closed_window() {
    local pid
    start "$1" 2 3 1 60
    await "is pid" "$tmp/out1" || return 1
    pid=$(pid_of 1)
    kill -STOP "$pid"
    sleep 4.5
    kill -CONT "$pid"
    finish
}
# Rank 0 stops in its first round. The others name it at their deadline.
stopped_rank() { # unix|tcp NODES PLACE
    local ret
    IRIS_NODES=$2 IRIS_TIMEOUT_MS=1500 FAULT_STOP=$3 start "$1" 3 1 1
    wait "${pids[1]}" "${pids[2]}"
    says 1 "rank 0 (pid $(pid_of 0).*) is stopped by a signal" &&
        says 2 "rank 0 (pid $(pid_of 0).*) is stopped by a signal"
    ret=$?
    kill "${pids[0]}"
    wait "${pids[0]}"
    pids=()
    return $ret
}
stopped_ranks() { # unix|tcp NODES
    for place in kernel collective finalize; do
        stopped_rank "$@" $place || { echo "at $place" && return 1; }
    done
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
    unset IRIS_ROOT
    rm -f "$tmp"/out*
    IRIS_TRANSPORT=mpi-messages timeout -k 5 $limit "$MPIRUN" -n 3 --oversubscribe \
        "$tmp/job" "$@" >"$tmp/out" 2>&1 &
    pids+=($!)
}
# A rank that stops before the end does not prolong the others' deadline of 2 s. The
# thread of MPI has a second more. A wait with a time limit of its own would end after
# 7 s at the earliest.
end_by_mpi() {
    local ret pid
    IRIS_TIMEOUT_MS=2000 FAULT_STOP=finalize by_mpi 1 1
    for _ in 1 2; do
        timeout 30 sh -c 'until [ $(grep -c "^finalize: " "$1") = 2 ]; do sleep 0.05; done' sh "$tmp/out"
    done
    [ "$(grep -c "^finalize: .* after [2-5] s" "$tmp/out")" = 2 ]
    ret=$?
    pid=$(sed -n 's/^rank 0 is pid //p' "$tmp/out")
    kill -9 "$pid" && kill "${pids[@]}" && wait "${pids[@]}"
    pids=()
    return $ret
}
stop_by_mpi() { # STOPS DOUBLINGS
    IRIS_TIMEOUT_MS=600000 by_mpi -1 1 3
    stop_ranks "$1" "$2"
}

# Like check, beside others and in a folder of its own, until join.
beside() { # WHAT COMMAND...
    (
        job=$tmp
        tmp=$(mktemp -d "$job/XXXXXX")
        ln -s "$job/job" "$job/shim.so" "$tmp"
        pids=()
        trap 'kill "${pids[@]}"' TERM
        check "$@"
        exit $failed
    ) &
    others+=($!)
}
join() {
    local pid
    for pid in "${others[@]}"; do
        wait "$pid" || failed=1
    done
    others=()
}

check "values are right without faults" run unix 3 5 1
check "a receiver that is stopped gets all data by TCP" closed_window tcp
check "a stopped rank is named, by shared memory" stopped_ranks unix 1
check "a stopped rank is named, by nodes" stopped_ranks tcp 2
if ./iris info | grep -q '^ *UCX *built in'; then
    IRIS_TRANSPORT=ucx UCX_TLS=tcp check "values are right by UCX" run unix 3 5 1
    IRIS_TRANSPORT=ucx check "a stopped rank is named, by UCX" stopped_ranks unix 3
    IRIS_TRANSPORT=ucx check "stops leave every value right by UCX" stop_jobs unix 2 1 3
fi
[ -z "$MPIRUN" ] || check "the end keeps its deadline by MPI" end_by_mpi
check "all ranks learn of a link that cannot be resumed" lost_link unix
check "all ranks learn of a link that cannot be resumed, by TCP" lost_link tcp
if [ "$IRIS_TEST_LONG" = 1 ]; then
    limit=3000
    beside "10,000 cuts leave every value right" cut_jobs 10000
    for control in unix tcp; do
        beside "400 stops leave every value right ($control)" stop_jobs $control 400 6 3
    done
    [ -z "$MPIRUN" ] || beside "200 stops leave every value right (MPI)" stop_by_mpi 200 6
    check "1,000 jobs start, go on and end with shortened reads and writes" short_jobs 1000
    join
else
    check "jobs start, go on and end with shortened reads and writes" short_jobs 4
    check "100 cuts leave every value right" cut_jobs 100
    check "stops leave every value right" stop_jobs unix 3 1 3
    [ -z "$MPIRUN" ] || check "stops leave every value right by MPI" stop_by_mpi 2 1
fi
# The planted faults.
FAULT_PLANT=drop FAULT_CUT=100000 never "a resumption that leaves out a byte passes" \
    run tcp 2 20 3
FAULT_PLANT=flip FAULT_CUT=100000 never "a resumption that changes a byte passes" \
    run tcp 2 20 3
exit $failed
