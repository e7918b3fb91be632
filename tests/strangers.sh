#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# Strangers on the network of a job of 3 hosts, which are network namespaces:
# 50 half-open, 50 silent, 50 incomplete and 50 rubbish connections at each port
# of the job while it forms; a recording of the network, and its replay. Needs
# root, iproute2 and python3.
# shellcheck disable=SC2317 # check and never call the functions
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/support/jobs.sh
. "$here/support/jobs.sh"
need_hosts
[ -x /usr/bin/python3 ] || { echo "skipped: needs python3" && exit 77; }
export IRIS_TIMEOUT_MS=20000 IRIS_JOB_ID=strange IRIS_ROOT=10.77.0.1:29400
export IRIS_JOB_SECRET="no stranger knows this text"
run_until=()

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
check "the job's program compiles" link "$tmp/job" "$tmp/job.c"

stranger() { # HOST MODE...
    on "$1" /usr/bin/python3 "$here/strangers.py" "${@:2}"
}
start() { # RANK SETTING...
    start_rank "$1" 3 on "$1" env "${@:2}" timeout -k 5 60 "$tmp/job" "${run_until[@]}"
}
form() { # SETTING...
    start_on 3 1 env "$@" timeout -k 5 60 "$tmp/job"
    finish
}
flood() {
    other "$tmp/flood" stranger 3 flood "$tag-0=10.77.0.1" "$tag-1=10.77.0.2" "$tag-2=10.77.0.3"
}
# The exit status is the job's.
finish_flooded() {
    local ended
    finish
    ended=$?
    end_other
    return $ended
}
# Rank 2 comes when every port of the others has been attacked.
form_attacked() { # SETTING...
    rm -f "$tmp"/out*
    flood
    start 0 "$@"
    start 1 "$@"
    await "attacked 10.77.0.1 29400" "$tmp/flood" || return 1
    start 2 "$@"
    finish_flooded
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
    rm -f "$tmp"/out*
    run_until=("$tmp/stop")
    for rank in 0 1 2; do
        start "$rank"
    done
    run_until=()
    await runs "$tmp/out0" || return 1
    flood
    await looked "$tmp/flood" || return 1
    touch "$tmp/stop"
    finish_flooded
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
    other "$tmp/recorder" stranger 0 record "$tmp/packets"
    await records "$tmp/recorder" && form IRIS_TRANSPORT=none && end_other
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
    stranger 3 replay "$tmp/packets" 10.77.0.1 29400
never "a stranger proves a secret that it guesses" \
    stranger 3 prove 10.77.0.1 29400 "no stranger knows this tex" "$IRIS_JOB_ID"
check "whoever knows the secret can prove it" \
    stranger 3 prove 10.77.0.1 29400 "$IRIS_JOB_SECRET" "$IRIS_JOB_ID"
exit $failed
