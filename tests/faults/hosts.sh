#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu waits
#
# test_faults with ranks on 2 and 3 hosts, which are network namespaces: a rank is
# killed or stopped, or its host's link ends, before its calls on sockets. Needs
# root and iproute2. IRIS_TEST_LONG=1 tries every call.
set -u
tag=iris-kills-$$
tmp=$(mktemp -d)

# shellcheck disable=SC2317 # called by the trap
clean() {
    for host in 0 1 2 n; do
        ip netns del "$tag-$host" 2>/dev/null
    done
    rm -rf "$tmp"
}
trap clean EXIT

# Hosts 10.79.0.1 to 10.79.0.3 at one switch, the namespace "n".
make_hosts() {
    ip netns add "$tag-n" && ip -n "$tag-n" link add switch type bridge &&
        ip -n "$tag-n" link set switch up || return 1
    for host in 0 1 2; do
        ip netns add "$tag-$host" &&
            ip -n "$tag-n" link add "to$host" type veth peer name eth0 netns "$tag-$host" &&
            ip -n "$tag-n" link set "to$host" master switch up &&
            ip -n "$tag-$host" addr add "10.79.0.$((host + 1))/24" dev eth0 &&
            ip -n "$tag-$host" link set eth0 up &&
            ip -n "$tag-$host" link set lo up || return 1
    done
}
if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || ! make_hosts 2>"$tmp/why"; then
    echo "skipped: needs root, ip and network namespaces"
    cat "$tmp/why" 2>/dev/null
    exit 77
fi

# With a folder for shared memory of its own, where nothing else is.
run() { # COMMAND...
    # shellcheck disable=SC2016 # the inner shell's own
    IRIS_TEST_SPACES=$tag TMPDIR=$tmp unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/shm && "$@"
        ret=$?; [ -z "$(ls -A /dev/shm)" ] || { echo "left: $(ls -A /dev/shm)" && ret=1; }; exit $ret' sh "$@"
}
run tests/faults/run ${1:+-k "$1"}
ret=$?
if IRIS_TEST_LONG=0 IRIS_TEST_WRONG=1 run tests/faults/run -k dies >"$tmp/out" 2>&1; then
    echo "FAILED: the test does not see that a rank which runs is blamed" && ret=1
fi
for host in 0 1 2; do
    if nsenter --net="/run/netns/$tag-$host" grep "@" /proc/net/unix; then
        echo "FAILED: host $host still has these sockets" && ret=1
    fi
done
exit $ret
