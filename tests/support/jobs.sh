# shellcheck shell=bash disable=SC2034,SC2317
# SPDX-License-Identifier: MIT
#
# For scripts that run jobs of several ranks as processes, on this host or on
# hosts that are network namespaces of it. It makes the folder $tmp. Everything is
# stopped and removed at the end.
support=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tag=iris-$$
tmp=$(mktemp -d)
failed=0
pids=()   # the ranks of the running job
others=() # other processes that end with the script
export TMPDIR=$tmp IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_HEAP_SIZE=16M
export IRIS_TIMEOUT_MS=60000 IRIS_HEAP_BASES_PREFIX=$tmp/job

# Not by SIGKILL, which a rank's timeout(1) could not pass on.
clean() {
    [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null
    [ ${#others[@]} = 0 ] || kill "${others[@]}" 2>/dev/null
    wait 2>/dev/null
    for host in 0 1 2 3 net; do
        [ ! -e "/run/netns/$tag-$host" ] || ip netns del "$tag-$host"
    done
    rm -rf "$tmp"
}
trap clean EXIT

check() { # WHAT COMMAND...
    if "${@:2}" >"$tmp/log" 2>&1; then
        echo "passed: $1"
    else
        echo "FAILED: $1" && cat "$tmp/log"
        tail -n 20 "$tmp"/out* 2>/dev/null
        failed=1
    fi
}
# The planted faults: what must fail.
never() { # WHAT COMMAND...
    if "${@:2}" >"$tmp/log" 2>&1; then
        echo "FAILED: $1"
        failed=1
    else
        echo "passed: not that $1"
    fi
}

# link PROGRAM SOURCE: a program with the library of the build folder.
link() {
    # shellcheck disable=SC2086 # the compiler may be a command with options
    ./libtool --silent --mode=link --tag=CC ${CC-cc} ${CFLAGS-} -std=gnu11 \
        -I. -Iinclude -I"$support/../../include" -no-install -o "$1" "$2" libiris.la -lpthread
}

# Hosts 10.77.0.1 (and fd77::1) to 10.77.0.4 at one switch, the namespace "net".
make_hosts() {
    ip netns add "$tag-net" && ip -n "$tag-net" link add switch type bridge &&
        ip -n "$tag-net" link set switch up || return 1
    for host in 0 1 2 3; do
        ip netns add "$tag-$host" &&
            ip -n "$tag-net" link add "to$host" type veth peer name eth0 netns "$tag-$host" &&
            ip -n "$tag-net" link set "to$host" master switch up &&
            ip -n "$tag-$host" addr add "10.77.0.$((host + 1))/24" dev eth0 &&
            ip -n "$tag-$host" addr add "fd77::$((host + 1))/64" dev eth0 nodad &&
            ip -n "$tag-$host" link set eth0 up &&
            ip -n "$tag-$host" link set lo up || return 1
        # As many systems have it, a host's own name is an address of its loopback.
        printf '10.77.0.%d host%d\n' 1 0 2 1 3 2 4 3 |
            sed "s/^10.77.0.* host$host$/127.0.1.1 host$host/" >"$tmp/hosts$host"
        printf 'fd77::%d six%d\n' 1 0 2 1 | sed "s/^fd77.* six$host$/::1 six$host/" >>"$tmp/hosts$host"
    done
}
# Ends the script if hosts cannot be made.
need_hosts() {
    if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || ! make_hosts 2>"$tmp/why"; then
        echo "skipped: needs root, ip and network namespaces"
        cat "$tmp/why" 2>/dev/null
        exit 77
    fi
}
# In a subshell it is the last command, so that a signal to $! reaches it.
on() { # HOST COMMAND...
    local exec=()
    [ $BASHPID = $$ ] || exec=(exec)
    # shellcheck disable=SC2016 # the inner shell's own
    "${exec[@]}" nsenter --net="/run/netns/$tag-$1" unshare --uts --mount \
        sh -c 'hostname "host$1" && mount --bind "$2/hosts$1" /etc/hosts; shift 2; exec "$@"' \
        sh "$1" "$tmp" "${@:2}"
}

# A rank's output goes to $tmp/outRANK.
start_rank() { # RANK RANKS COMMAND...
    IRIS_RANK=$1 IRIS_NUM_RANKS=$2 "${@:3}" >"$tmp/out$1" 2>&1 &
    pids+=($!)
}
start_on() { # HOSTS RANKS-OF-EACH COMMAND...
    local rank
    pids=()
    rm -f "$tmp"/out*
    for ((rank = 0; rank < $1 * $2; rank++)); do
        IRIS_ROOT=${ROOT-10.77.0.1}:29400 start_rank $rank $(($1 * $2)) on $((rank / $2)) "${@:3}"
    done
}
# The highest of the ranks' exit statuses.
finish() {
    local worst=0 pid ret
    for pid in "${pids[@]}"; do
        wait "$pid" 2>/dev/null
        ret=$?
        [ $ret -le $worst ] || worst=$ret
    done
    pids=()
    return $worst
}
run_on() { # HOSTS RANKS-OF-EACH COMMAND...
    start_on "$1" "$2" timeout -k 5 120 "${@:3}"
    finish
}

# Processes beside the job; others[-1] is the last one.
other() { # FILE COMMAND...: its output goes to the file
    "${@:2}" >"$1" 2>&1 &
    others+=($!)
}
end_other() {
    kill "${others[-1]}" && wait "${others[-1]}" 2>/dev/null
    unset "others[-1]"
}

# Until the file has the text.
await() { # TEXT FILE
    # shellcheck disable=SC2016 # the inner shell's own
    timeout 30 sh -c 'until grep -q "$1" "$2"; do sleep 0.05; done' sh "$@"
}
# Jobs print a line "rank R is pid P".
pid_of() { # RANK
    sed -n "s/^rank $1 is pid \([0-9]*\).*/\1/p" "$tmp/out$1"
}
says() { # RANK TEXT
    grep -q "$2" "$tmp/out$1" || { echo "rank $1 does not say: $2" && return 1; }
}
