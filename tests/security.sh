#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# Tests SECURITY.md's claims about another user of the same machine, each by an
# experiment with a job of one uid and another user. It needs root to change to
# both.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${CC:=cc}" "${CFLAGS=}"
if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null || [ ! -x /usr/bin/python3 ]; then
    echo "skipped: needs root, setpriv and python3"
    exit 77
fi
# Two runs at once have jobs of different users.
owner=$((20000 + $$ % 20000 * 2))
stranger=$((owner + 1))
tmp=$(mktemp -d)
jobs_pids=
# shellcheck disable=SC2086 # a list
trap 'kill -9 $jobs_pids 2>/dev/null; rm -rf "$tmp"' EXIT
chmod 755 "$tmp" && mkdir "$tmp/owner" && chown $owner "$tmp/owner"
failed=0
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_HEAP_SIZE=8M IRIS_LOG_LEVEL=off
export IRIS_TIMEOUT_MS=120000 IRIS_HEAP_BASES_PREFIX=$tmp/owner/job

as() { # UID COMMAND...
    setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"
}

# ok WHAT COMMAND...: succeeds; never WHAT COMMAND...: fails.
ok() {
    if "${@:2}" >"$tmp/log" 2>&1; then
        echo "passed: $1"
    else
        echo "FAILED: $1" && cat "$tmp/log"
        failed=1
    fi
}
never() {
    if "${@:2}" >"$tmp/log" 2>&1; then
        echo "FAILED: $1" && cat "$tmp/log"
        failed=1
    else
        echo "passed: $1"
    fi
}

# A rank that joins and stays until its standard input ends.
cat >"$tmp/hold.c" <<'END'
#include <iris/iris.h>
#include <stdio.h>
int main(void)
{
    iris_t *iris;
    void *memory;
    if (iris_init(NULL, &iris) != IRIS_OK ||
        iris_malloc(iris, 4096, &memory) != IRIS_OK) {
        printf("%s\n", iris_last_error());
        return 1;
    }
    printf("ready\n");
    fflush(stdout);
    getchar();
    return iris_finalize(iris) != IRIS_OK;
}
END
# shellcheck disable=SC2086 # flags are many words
$CC $CFLAGS -I"$PWD/include" -I"$here/../include" -o "$tmp/hold" "$tmp/hold.c" \
    -L"$PWD/.libs" -liris || exit 1
cp -L .libs/libiris.so.0 iris "$tmp"
[ ! -e .libs/iris ] || cp .libs/iris "$tmp"
chmod 755 "$tmp"/*
export LD_LIBRARY_PATH=$tmp

# start RANK RANKS NAME SETTING...: a rank of the owner's job NAME; its pid is $!.
start() {
    mkfifo "$tmp/$3.$1.in" && chmod 666 "$tmp/$3.$1.in"
    setpriv --reuid=$owner --regid=$owner --clear-groups \
        env IRIS_RANK="$1" IRIS_NUM_RANKS="$2" IRIS_JOB_ID="$3" "${@:4}" "$tmp/hold" \
        <"$tmp/$3.$1.in" >"$tmp/$3.$1.out" 2>&1 &
    jobs_pids="$jobs_pids $!"
}
ready() { # FILE: until it says so, at most a minute
    for _ in {1..600}; do
        ! grep -q . "$1" || break
        sleep 0.1
    done
    grep -q ready "$1"
}

# A stranger knocks at an abstract socket: connects, sends 4096 bytes of rubbish
# with its standard input's descriptor, and shows the answer.
cat >"$tmp/knock" <<'END'
import array, socket, sys
kind = {"seq": socket.SOCK_SEQPACKET, "stream": socket.SOCK_STREAM,
        "datagram": socket.SOCK_DGRAM}[sys.argv[1]]
name = sys.argv[2]
address = ("127.0.0.1", int(name)) if name.isdigit() else "\0" + name
family = socket.AF_INET if name.isdigit() else socket.AF_UNIX
with socket.socket(family, kind) as s:
    s.settimeout(10)
    s.connect(address)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))]
    try:
        s.sendmsg([b"A" * 4096], rights if family == socket.AF_UNIX else [])
        print("answer:", s.recv(65536))
    except OSError as error:
        print("none:", error)
END

# 1. Shared memory: no name, for the owner alone.
start 0 2 pair && first=$!
start 1 2 pair
exec 7>"$tmp/pair.0.in" 8>"$tmp/pair.1.in"
ok "a job of two ranks of one user" ready "$tmp/pair.0.out"
ok "its own memory opens for the owner (else the next says nothing)" as $owner \
    sh -c "for f in /proc/$first/fd/*; do case \$(readlink \$f) in /dev/shm*) head -c 1 \$f >/dev/null && exit; esac; done; exit 1"
never "no name in /dev/shm" sh -c "find /dev/shm -uid $owner | grep ."
never "the stranger opens no descriptor of the job" as $stranger \
    sh -c "for f in /proc/$first/fd/*; do head -c 1 \$f && exit; done; for n in 3 4 5 6 7 8 9; do head -c 1 /proc/$first/fd/\$n && exit; done; exit 1"
never "the stranger maps nothing of its memory" as $stranger head -c 1 "/proc/$first/mem"
never "iris top shows the stranger no job" as $stranger sh -c "'$tmp/iris' top $first 2>&1 | grep 'rank 1'"
ok "iris top shows the owner the job" as $owner sh -c "'$tmp/iris' top $first 2>&1 | grep 'rank 1'"
never "the stranger cannot signal a rank" as $stranger kill -USR2 "$first"

# 2. Sockets of a running job: none that has a name.
names() { # PID: its names in the abstract namespace
    as $owner find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n' >"$tmp/inodes"
    awk 'NR == FNR { mine[$1]; next } $7 in mine && $8 ~ /^@/ { print substr($8, 2) }' \
        "$tmp/inodes" /proc/net/unix | sort -u
}
never "a running job has no named socket" sh -c "echo '$(names "$first")' | grep ."
echo >&7 && echo >&8
wait "$first"
# The name of rank 0's socket, as a program finds it that knows IRIS_JOB_ID.
socket_of() { # JOB
    /usr/bin/python3 -c "
import hashlib, hmac
secret = hashlib.sha256(b'job-$1').digest()
print('iris/$owner/' + hmac.new(secret, b'rank 0', 'sha256').hexdigest()[:32])"
}
forms=$(socket_of forms)

# 3. A job that forms: the stranger knocks, then the second rank comes.
start 0 2 forms && first=$!
exec 7>"$tmp/forms.0.in"
for _ in {1..600}; do
    grep -q "@$forms" /proc/net/unix && break
    sleep 0.1
done
ok "rank 0 listens under a hash" grep -q "@$forms" /proc/net/unix
never "no name of a socket has the job's name" grep -q 'job-forms' /proc/net/unix
as $stranger timeout 100 /usr/bin/python3 "$tmp/knock" seq "$forms" \
    >"$tmp/knocked" 2>&1 </dev/null
cat "$tmp/knocked"
start 1 2 forms
exec 8>"$tmp/forms.1.in"
ok "a job forms though a stranger knocked" ready "$tmp/forms.0.out"
echo >&7 && echo >&8
ok "and ends well" wait "$first"

# 4. The stranger takes the name first: the job does not form, and says who.
setpriv --reuid=$stranger --regid=$stranger --clear-groups /usr/bin/python3 -c "
import socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(chr(0) + '$(socket_of taken)'); s.listen(); print('up', flush=True)
time.sleep(600)" >"$tmp/taken" 2>&1 &
jobs_pids="$jobs_pids $!"
ok "a stranger can take a job's name (so the next is one)" sh -c "for i in \$(seq 600); do grep -q up '$tmp/taken' && exit; sleep 0.1; done; exit 1"
start 0 2 taken
exec 7>"$tmp/taken.0.in"
wait $!
ok "rank 0 names the uid that holds its name" grep "uid $stranger" "$tmp/taken.0.out"
start 1 2 taken
exec 7>"$tmp/taken.1.in"
wait $!
ok "rank 1 does not talk to a stranger" grep "held by uid $stranger" "$tmp/taken.1.out"

# 5. Control over TCP on the loopback: who does not know the key is refused.
port=$((20000 + $$ % 10000))
start 0 2 tcp IRIS_TRANSPORT=none IRIS_NODES=2 IRIS_ROOT=127.0.0.1:$port && first=$!
start 1 2 tcp IRIS_TRANSPORT=none IRIS_NODES=2 IRIS_ROOT=127.0.0.1:$port
exec 7>"$tmp/tcp.0.in" 8>"$tmp/tcp.1.in"
ok "a job of two nodes by TCP" ready "$tmp/tcp.0.out"
# Leaders listen for links that were cut.
left=$(awk -v u="$owner" '$4 == "0A" && $8 == u { sub(/.*:/, "", $2); print $2 }' /proc/net/tcp)
# shellcheck disable=SC2086 # ports
ok "each listener that is left refuses who has no proof" /usr/bin/python3 -c "
import os, socket, sys
for port in sys.argv[1:]:
    with socket.create_connection(('127.0.0.1', int(port, 16)), timeout=20) as s:
        greeting = s.recv(40, socket.MSG_WAITALL)
        s.sendall(b'irisprf1' + os.urandom(129))
        try:
            answer = s.recv(98, socket.MSG_WAITALL)
        except ConnectionResetError:
            answer = b''
        if greeting[:8] != b'irisprf1' or answer.strip(b'\0') != b'':
            sys.exit('port %s: %r, %r' % (port, greeting, answer))
if len(sys.argv) < 3:
    sys.exit('there are no listeners')" $left
echo >&7 && echo >&8
ok "and ends well" wait "$first"
exit $failed
