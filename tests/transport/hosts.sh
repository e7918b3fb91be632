#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu waits
#
# Jobs of several hosts, which are network namespaces of this one: ranks that
# meet by IRIS_ROOT and by mpirun, a rank that dies, a link that is cut. Needs
# root and iproute2.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${MPIRUN=}" "${TEST_WRAPPER=}"
# shellcheck source=tests/support/jobs.sh
. "$here/../support/jobs.sh"
need_hosts

# Until every rank of the job has played its first round.
await_round() {
    local rank
    for ((rank = 0; rank < ${#pids[@]}; rank++)); do
        await "on node" "$tmp/out$rank" || return 1
    done
}

job=$tmp/job_program
check "the job's program compiles" link "$job" "$here/hosts_job.c"

# As torchrun starts ranks: one agent on each host.
by_torchrun() {
    local rank
    pids=()
    for rank in 0 1 2 3; do
        on $((rank / 2)) env RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$((rank % 2)) LOCAL_WORLD_SIZE=2 \
            MASTER_ADDR=10.77.0.1 MASTER_PORT=29399 TORCHELASTIC_RUN_ID=run \
            timeout -k 5 60 "$job" 3 >"$tmp/out$rank" 2>&1 &
        pids+=($!)
    done
    finish
}

nodes_are() { # LINE-OF-EACH-RANK...
    local rank=0 node
    for node in "$@"; do
        says $rank "on node $node" || return 1
        rank=$((rank + 1))
    done
}
check "2 hosts of 2 ranks exchange values" run_on 2 2 "$job" 20
never "a wrong value passes" run_on 2 2 env IRIS_TEST_WRONG=2 "$job" 20
ROOT=host0 check "rank 0's host by its name" run_on 2 2 "$job" 2
check "the variables of torchrun on 2 hosts" by_torchrun
check "each host is a node" nodes_are "0 of 2" "0 of 2" "1 of 2" "1 of 2"
check "4 hosts of 1 rank exchange values" run_on 4 1 "$job" 20
check "2 hosts of 2 pretended nodes are 4" run_on 2 2 env IRIS_NODES=4 "$job" 2
check "each pretended node is one" nodes_are "0 of 4" "1 of 4" "2 of 4" "3 of 4"
ROOT="[fd77::1]" check "rank 0's host by its IPv6 address" run_on 2 2 "$job" 2
ROOT=six0 check "rank 0's host by a name with an IPv6 address only" run_on 2 2 "$job" 2
ROOT="[fd77::9]" never "an address of no host will do" run_on 2 1 env IRIS_TIMEOUT_MS=3000 "$job" 2
check "IRIS_ROOT on one host makes one node" run_on 1 2 "$job" 3
check "one node it is" nodes_are "0 of 1" "0 of 1"

# A rank that dies is named on every host; PEER_LOST is what hosts_job waits for.
kill_one() { # RANK
    local rank
    start_on 2 2 timeout -k 5 120 "$job" 0
    await_round || return 1
    kill -9 "$(pid_of "$1")"
    finish
    for rank in 0 1 2 3; do
        [ "$rank" = "$1" ] || says $rank "rank $1 (pid $(pid_of "$1") on host$(($1 / 2))) died" || return 1
    done
}
for rank in 0 1 3; do
    check "rank $rank's death is named on both hosts" kill_one $rank
done

# A whole host: both of its ranks at once.
kill_host() {
    local rank
    start_on 2 2 timeout -k 5 120 "$job" 0
    await_round || return 1
    kill -9 "$(pid_of 2)" "$(pid_of 3)"
    finish
    for rank in 0 1; do
        says $rank "rank [23] (pid [0-9]* on host1) died" || return 1
    done
}
check "a host whose ranks all die is named" kill_host

# A sweep: a rank, or each rank of a host, dies at any moment. Every other rank
# names a dead rank of that host, and no process is left.
sweep() { # JOBS [HOST TO BE NAMED]
    local job_number victim blamed rank dead
    RANDOM=7
    for ((job_number = 1; job_number <= $1; job_number++)); do
        victim=$((RANDOM % 4)) dead=" $victim "
        blamed=${2-$((victim / 2))}
        [ $((RANDOM % 4)) != 0 ] || dead+="$((victim ^ 1)) "
        start_on 2 2 timeout -k 5 120 "$job" 0
        await_round || return 1
        sleep "0.0$((RANDOM % 10))"
        for rank in $dead; do
            kill -9 "$(pid_of "$rank")"
        done
        finish
        for rank in 0 1 2 3; do
            [[ $dead = *" $rank "* ]] ||
                says $rank "^rank $rank: IRIS_ERR_PEER_LOST: .*rank [$((2 * blamed))$((2 * blamed + 1))] (pid" ||
                { echo "job $job_number, killed:$dead" && return 1; }
        done
    done
    ! pgrep -f "$job"
}
jobs=3
[ "${IRIS_TEST_LONG-}" != 1 ] || jobs=300
check "$jobs jobs of which ranks die" sweep $jobs
never "a rank of the host whose ranks live is named" sweep 3 1

# A kernel of rank 3 waits, and the other ranks wait for rank 3. The deadline is
# that of the first host.
hang() { # HOSTS COMMAND...
    # shellcheck disable=SC2016 # the inner shell's own
    start_on "$1" $((4 / $1)) timeout -k 5 60 env IRIS_TEST_HANG=3 \
        sh -c '[ "$IRIS_RANK" -ge 2 ] || export IRIS_TIMEOUT_MS=3000; exec "$@"' sh "${@:2}" "$job" 0
    await_round
}
waits="kernel wait_for_nobody, workgroup 0 of 1, waits .*, [0-9.]* s$"
report_of() { # HOST TEXT: one of its ranks prints the report
    grep -h "$2" "$tmp/out$((2 * $1))" "$tmp/out$((2 * $1 + 1))"
}
reports() {
    report_of 0 "\] HUNG: .*rank 3: kernel wait_for_nobody" &&
        report_of 0 " rank 3 (pid [0-9]* on host1, .*): $waits"
}
report() {
    hang 2 && finish
    reports
}
check "a report names what a kernel of the other host waits for" report
# The calls of rank 3, also while it is stopped: the leader of its host reads them.
calls() {
    local ret
    on 0 ./iris top --calls "$(pid_of 0)" | grep -q "^ *3 " || return 1
    kill -STOP "$(pid_of 3)"
    on 0 ./iris top --calls "$(pid_of 0)" >"$tmp/outcalls"
    grep -q "^ *2 " "$tmp/outcalls" && grep -q "^ *3 " "$tmp/outcalls"
    ret=$?
    kill -CONT "$(pid_of 3)"
    return $ret
}
look() {
    local ret
    start_on 2 2 timeout -k 5 60 env IRIS_TEST_HANG=3 "$job" 0
    await_round || return 1
    for _ in 1 2 3 4 5 6 7 8 9; do
        on 0 ./iris top "$(pid_of 0)" >"$tmp/outtop" 2>&1
        grep "rank 3 (pid $(pid_of 3) on host1, .*): $waits" "$tmp/outtop"
        ret=$?
        [ $ret != 0 ] || break
    done
    calls && on 0 ./iris top | grep " $(pid_of 0),$(pid_of 1)$" || ret=1
    kill -9 "$(pid_of 1)"
    finish
    return $ret
}
check "so does iris top" look

# The other host's clock is behind.
# shellcheck disable=SC2016 # the inner shell's own
ahead='[ "$IRIS_RANK" -ge 2 ] || set -- unshare --time --monotonic 5000 --fork --kill-child "$@"; exec "$@"'
by_another_clock() {
    hang 2 sh -c "$ahead" sh && finish
    reports && report_of 0 "under way: call [0-9]*, synchronize, [0-9]\{1,2\}\.[0-9] s ago"
}
! unshare --time --monotonic 5000 --fork true 2>/dev/null ||
    check "times of the other host are those of this one" by_another_clock

# The leader of a host tells that its rank is stopped. If the leader is, too, the
# host's records are old, and the report does not take forever.
halted() {
    hang 2 || return 1
    kill -STOP "$(pid_of 3)"
    for rank in 0 1; do
        await "rank $rank: IRIS_ERR_TIMEOUT" "$tmp/out$rank" || return 1
    done
    kill -CONT "$(pid_of 3)"
    finish
    report_of 0 " rank 3 (pid [0-9]* on host1, stopped"
}
silent() {
    hang 2 || return 1
    kill -STOP "$(pid_of 3)" "$(pid_of 2)"
    for rank in 0 1; do
        await "rank $rank: IRIS_ERR_TIMEOUT" "$tmp/out$rank" || return 1
    done
    kill -CONT "$(pid_of 3)" "$(pid_of 2)"
    finish
    report_of 0 " rank 3 (.*): does not answer from another host; by its last message it is "
}
check "a report says that a rank of the other host is stopped" halted
check "a report says that the ranks of a stopped leader do not answer" silent
never "a report names the wait of a rank that does not answer" reports
pretended() {
    hang 1 env IRIS_NODES=2 && finish
    report_of 0 "\] HUNG: .*rank 3: kernel wait_for_nobody"
}
check "a report of one host names a wait of another pretended node" pretended

# If both hosts report at once, neither says that ranks of the other one left.
both() {
    for _ in 1 2 3; do
        start_on 2 2 timeout -k 5 60 env IRIS_TEST_HANG=3 IRIS_TIMEOUT_MS=2000 "$job" 0
        await_round && finish
        reports && report_of 1 "\] HUNG: .*rank 3: kernel wait_for_nobody" && return
    done
    return 1
}
check "both hosts report" both

# A stopped rank keeps its connections: a deadline ends the wait. The ranks whose
# deadline passes later can find that another rank has left the job.
stop_one() {
    local rank
    start_on 2 2 timeout -k 5 60 env IRIS_TIMEOUT_MS=2000 "$job" 0
    await_round || return 1
    kill -STOP "$(pid_of 3)"
    for rank in 0 1 2; do
        await "rank $rank: IRIS_ERR_\(TIMEOUT\|PEER_LOST\)" "$tmp/out$rank" || return 1
    done
    grep -hE "^rank [0-2]: .*rank 3( has not come|, on another node, has not answered)" "$tmp"/out[0-2] || return 1
    kill -CONT "$(pid_of 3)"
    finish
}
check "a stopped rank of the other host is named" stop_one

# A host that cannot be reached any more: each side names the other.
cut() { # LINK
    start_on 2 2 timeout -k 5 "${PATIENCE-30}" "$job" 0
    await_round || return 1
    ip -n "$tag-net" link set "$1" down
    finish || return 1
    for rank in 0 1; do
        says $rank "on host1) left the job: its host does not answer" || return 1
    done
    report_of 0 "\] LOST: rank [23] (pid [0-9]*) left the job .*: its host does not answer" &&
        report_of 1 "\] LOST: rank 0 (pid [0-9]*) left the job .*: its host does not answer" || return 1
    for rank in 2 3; do
        says $rank "rank 0 (.*on host0) left the job: its host does not answer" || return 1
    done
}
# Packets are lost for a second, less than a lost host is waited for.
gap() {
    start_on 2 2 timeout -k 5 120 "$job" 2000
    await_round || return 1
    ip -n "$tag-net" link set to1 down
    sleep 1
    ip -n "$tag-net" link set to1 up
    finish
}
check "a gap in the network changes no value" gap
check "a cut link is named on both sides" cut to1
ip -n "$tag-net" link set to1 up
PATIENCE=8 never "a job with another link cut is lost" cut to3
ip -n "$tag-net" link set to3 up

# A rank of another job comes first; the job's own rank 1 comes once it is gone.
refuse() {
    local ret
    IRIS_JOB_ID=a start_on 1 1 env IRIS_NUM_RANKS=2 timeout -k 5 30 "$job" 1
    IRIS_JOB_ID=b another; ret=$?
    IRIS_JOB_ID=a another || return 1
    finish && [ $ret = 1 ] && grep -q "rank 0 of another job listens" "$tmp/out1b"
}
another() {
    on 1 env IRIS_RANK=1 IRIS_NUM_RANKS=2 IRIS_ROOT=10.77.0.1:29400 \
        timeout -k 5 30 "$job" 1 >"$tmp/out1$IRIS_JOB_ID" 2>&1
}
check "a rank of another job is turned away, and its own is not" refuse

# mpirun on two hosts: its daemon of the other host is started there by `on`.
cat >"$tmp/agent" <<END
#!/bin/bash
host=\$1
shift
exec nsenter --net=/run/netns/$tag-\${host##*.} unshare --uts sh -c "hostname host\${host##*.}; \$*"
END
chmod +x "$tmp/agent"
by_mpi() { # TRANSPORT PROGRAM...
    on 0 env IRIS_TRANSPORT="$1" timeout -k 5 100 "$MPIRUN" --mca plm_rsh_agent "$tmp/agent" \
        --mca plm_rsh_no_tree_spawn 1 --host host0:2,10.77.0.2:2 --map-by slot \
        --mca btl self,vader,tcp --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 \
        -n 4 -x IRIS_TRANSPORT "${@:2}" >"$tmp/out0" 2>&1
}
if [ -n "$MPIRUN" ] && ./iris info | grep -q '^ *MPI *built in'; then
    check "mpirun on 2 hosts" by_mpi socket "$job" 20
    check "mpirun's hosts are nodes" says 0 "rank 3 is .* on node 1 of 2"
    check "mpirun on 2 hosts, puts by MPI" by_mpi mpi "$job" 20
fi

# Without IPv4.
for host in 0 1; do
    ip -n "$tag-$host" -4 addr flush dev eth0
done
ROOT="[fd77::1]" check "2 hosts with IPv6 only" run_on 2 2 "$job" 5
never "hosts with IPv6 only meet by IPv4" run_on 2 2 env IRIS_TIMEOUT_MS=3000 "$job" 5
for host in 0 1; do
    ip -n "$tag-$host" addr add "10.77.0.$((host + 1))/24" dev eth0
done

# Tests of ranks with 2 hosts of 2 ranks: a sample, or those that the caller names.
: "${IRIS_TEST_HOSTS=tests/transport/test_far tests/transport/test_far_ccl tests/context/test_sync}"
run_test() { # TEST, which may have nothing to run here
    local ret
    # shellcheck disable=SC2086 # a command with options
    run_on 2 2 ${TEST_WRAPPER} "./${1%/*}/run" "${1##*/}"
    ret=$?
    [ $ret = 0 ] || [ $ret = 77 ]
}
for test in $IRIS_TEST_HOSTS; do
    [ ! -x "${test%/*}/run" ] || check "$test, 2 hosts of 2 ranks" run_test "$test"
done
[ $failed = 0 ]
