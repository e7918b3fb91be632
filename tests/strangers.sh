#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: gpus
#
# Strangers on the network of a job of 3 hosts, which are network namespaces:
# 50 half-open, 50 silent, 50 incomplete and 50 rubbish connections at each port
# of the job while it forms; a recording of the network, and its replay. Needs
# root, iproute2 and python3.
# shellcheck disable=SC2317 # check and never call the functions
set -u
here=$(cd "$(dirname "$0")" && pwd)
tag=iris-$$
tmp=$(mktemp -d)
failed=0
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_HEAP_SIZE=16M IRIS_HEAP_BASES_FILES=0
export IRIS_TIMEOUT_MS=20000 IRIS_JOB_ID=strange IRIS_NUM_RANKS=3 IRIS_ROOT=10.78.0.1:29400
export IRIS_JOB_SECRET="no stranger knows this text"

pids=() strangers=() run_until=()
# shellcheck disable=SC2317 # called by the trap
clean() {
    kill -9 "${pids[@]}" "${strangers[@]}" 2>/dev/null
    wait 2>/dev/null
    for host in 0 1 2 3 net; do
        ip netns del "$tag-$host" 2>/dev/null
    done
    rm -rf "$tmp"
}
trap clean EXIT

make_hosts() {
    ip netns add "$tag-net" && ip -n "$tag-net" link add switch type bridge &&
        ip -n "$tag-net" link set switch up || return 1
    for host in 0 1 2 3; do
        ip netns add "$tag-$host" &&
            ip -n "$tag-net" link add "to$host" type veth peer name eth0 netns "$tag-$host" &&
            ip -n "$tag-net" link set "to$host" master switch up &&
            ip -n "$tag-$host" addr add "10.78.0.$((host + 1))/24" dev eth0 &&
            ip -n "$tag-$host" link set eth0 up &&
            ip -n "$tag-$host" link set lo up || return 1
    done
}
if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || [ ! -x /usr/bin/python3 ] ||
    ! make_hosts 2>"$tmp/why"; then
    echo "skipped: needs root, ip, network namespaces and python3"
    cat "$tmp/why" 2>/dev/null
    exit 77
fi

check() { # WHAT COMMAND...
    if "${@:2}" >"$tmp/log" 2>&1; then
        echo "passed: $1"
    else
        echo "FAILED: $1" && cat "$tmp/log"
        tail -n 5 "$tmp"/out* 2>/dev/null
        failed=1
    fi
}
never() { # The planted faults: what must fail.
    if "${@:2}" >"$tmp/log" 2>&1; then
        echo "FAILED: $1"
        failed=1
    else
        echo "passed: not that $1"
    fi
}
await() { # TEXT FILE
    # shellcheck disable=SC2016 # the inner shell's own
    timeout 30 sh -c 'until grep -q "$1" "$2"; do sleep 0.05; done' sh "$@"
}

cat >"$tmp/job.c" <<'END'
#include <iris/iris.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct timespec a, b;
    long rounds = 0;
    iris_t *iris;
    clock_gettime(CLOCK_MONOTONIC, &a);
    if (iris_init(NULL, &iris) != IRIS_OK || iris_barrier(iris, NULL, NULL) != IRIS_OK) {
        printf("init: %s\n", iris_last_error());
        return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    /* With an argument, the job runs until rank 0 finds that file. */
    for (int go_on = argc > 1; go_on;) {
        go_on = access(argv[1], F_OK) != 0;
        if (iris_broadcast(iris, &go_on, sizeof go_on, 0, NULL) != IRIS_OK) {
            printf("round: %s\n", iris_last_error());
            return 1;
        }
        if (rounds++ == 0) {
            printf("runs\n");
            fflush(stdout);
        }
    }
    printf("formed in %ld ms\n", (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000);
    return iris_finalize(iris) != IRIS_OK;
}
END
# shellcheck disable=SC2086 # the compiler may be a command with options
build() {
    ./libtool --silent --mode=link --tag=CC ${CC-cc} ${CFLAGS-} -std=gnu11 \
        -I. -Iinclude -I"$here/../include" -no-install -o "$tmp/job" \
        "$tmp/job.c" libiris.la -lpthread
}
check "the job's program compiles" build

on() { # HOST COMMAND...
    nsenter --net="/run/netns/$tag-$1" "${@:2}"
}
stranger() { # HOST MODE...
    on "$1" /usr/bin/python3 "$here/strangers.py" "${@:2}"
}
start() { # RANK SETTING...
    on "$1" env IRIS_RANK="$1" "${@:2}" timeout -k 5 60 "$tmp/job" "${run_until[@]}" >"$tmp/out$1" 2>&1 &
    pids+=($!)
}
finish() {
    local worst=0 pid
    for pid in "${pids[@]}"; do
        wait "$pid" 2>/dev/null || worst=$?
    done
    pids=()
    return "$worst"
}
form() { # SETTING...
    rm -f "$tmp"/out*
    for rank in 0 1 2; do
        start "$rank" "$@"
    done
    finish
}
# Rank 2 comes when every port of the others has been attacked.
form_attacked() { # SETTING...
    local flood ended
    rm -f "$tmp"/out*
    nsenter --net="/run/netns/$tag-3" /usr/bin/python3 "$here/strangers.py" flood "$tag-0=10.78.0.1" "$tag-1=10.78.0.2" "$tag-2=10.78.0.3" >"$tmp/flood" 2>&1 &
    flood=$! && strangers+=("$flood")
    start 0 "$@"
    start 1 "$@"
    await "attacked 10.78.0.1 29400" "$tmp/flood" || return 1
    start 2 "$@"
    finish
    ended=$?
    kill -9 "$flood" && wait "$flood" 2>/dev/null
    return "$ended"
}

for transport in none socket; do
    check "a job of 3 hosts forms, transport $transport" form IRIS_TRANSPORT="$transport"
    cat "$tmp/out2"
    check "it forms among strangers at every port, transport $transport" \
        form_attacked IRIS_TRANSPORT="$transport"
    cat "$tmp/out2" && grep -c attacked "$tmp/flood"
done
# A job that runs while its ports, if it has any, are attacked.
run_attacked() {
    local flood ended
    rm -f "$tmp"/out*
    run_until=("$tmp/stop")
    for rank in 0 1 2; do
        start "$rank"
    done
    run_until=()
    await runs "$tmp/out0" || return 1
    nsenter --net="/run/netns/$tag-3" /usr/bin/python3 "$here/strangers.py" flood \
        "$tag-0=10.78.0.1" "$tag-1=10.78.0.2" "$tag-2=10.78.0.3" >"$tmp/flood" 2>&1 &
    flood=$! && strangers+=("$flood")
    await looked "$tmp/flood" || return 1
    touch "$tmp/stop"
    finish
    ended=$?
    kill -9 "$flood" && wait "$flood" 2>/dev/null
    return "$ended"
}
check "a running job goes on while its ports are attacked" run_attacked
cat "$tmp/out2"

other_secret() {
    rm -f "$tmp"/out*
    start 0 IRIS_TIMEOUT_MS=3000
    start 1 IRIS_TIMEOUT_MS=3000
    start 2 IRIS_TIMEOUT_MS=3000 IRIS_JOB_SECRET="another text of a stranger"
    finish
}
never "a rank with another secret joins" other_secret
check "it is told why" grep -q "has another secret" "$tmp/out2"

# The recorder hears all of rank 0's host.
recorded() {
    nsenter --net="/run/netns/$tag-0" /usr/bin/python3 "$here/strangers.py" record "$tmp/packets" >"$tmp/recorder" 2>&1 &
    local recorder=$!
    strangers+=("$recorder")
    await records "$tmp/recorder" || return 1
    form IRIS_TRANSPORT=none || return 1
    kill -9 "$recorder" && wait "$recorder" 2>/dev/null
    return 0
}
check "a job forms while a stranger records its packets" recorded
check "the packets have neither the secret nor its key" \
    stranger 3 check "$tmp/packets" "$IRIS_JOB_SECRET" "$IRIS_JOB_ID"
never "a packet with the secret goes unseen" sh -c "
    printf '\0\0\0\33%s' '$IRIS_JOB_SECRET' >>'$tmp/packets' &&
    /usr/bin/python3 '$here/strangers.py' check '$tmp/packets' '$IRIS_JOB_SECRET' '$IRIS_JOB_ID'"
start 0 IRIS_NUM_RANKS=2
await_port() {
    # shellcheck disable=SC2016 # the inner shell's own
    on 0 timeout 30 sh -c 'until grep -q ":72D8 .* 0A " /proc/net/tcp; do sleep 0.05; done'
}
check "rank 0 of another run waits" await_port
check "the recorded bytes of a rank prove nothing to it" \
    stranger 3 replay "$tmp/packets" 10.78.0.1 29400
never "a stranger proves a secret that it guesses" \
    stranger 3 prove 10.78.0.1 29400 "no stranger knows this tex" "$IRIS_JOB_ID"
check "whoever knows the secret can prove it" \
    stranger 3 prove 10.78.0.1 29400 "$IRIS_JOB_SECRET" "$IRIS_JOB_ID"
exit $failed
