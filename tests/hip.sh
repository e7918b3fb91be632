#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: gpus
#
# The module of the GPU backend from a program's view: working, without a GPU,
# without its runtime, not installed, or from another build. The build and the
# machine decide which of these run.
set -u
: "${CC:=cc}" "${CFLAGS:=}" "${IRIS_MODULE_DIR:=}"
[ -e "$IRIS_MODULE_DIR/iris_hip.so" ] || exit 77
. "$(dirname "$0")/support/script.sh"
output=$tmp/out
unset IRIS_BACKEND IRIS_SIM_DEVICE IRIS_SIMULATION

# Runs a subcommand and expects an exit status: info STATUS ARGUMENT...
tool() { # NAME STATUS ARGUMENT...
    local ret
    ./iris "$1" "${@:3}" >"$output" 2>&1
    ret=$?
    [ $ret = "$2" ] || fail "iris $1 ${*:3} exits with $ret"
}
info() { tool info "$@"; }
probe() { tool probe "$1" --bytes $((1 << 20)) --rounds 3; }

# Expects a line that matches.
has() { # PATTERN
    grep -qE "$1" "$output" || fail "no line like: $1"
}

# hip cannot run, for this reason; what else there is works.
lacks() { # PATTERN
    IRIS_BACKEND=hip info 1
    has "! no backend in use: .*backend \"hip\".*$1"
    has 'IRIS_BACKEND=sim'
    IRIS_BACKEND=hip probe 1
    has "^iris probe: IRIS_ERR_BACKEND.*$1"
    IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu info 1
    has "$1"
    info 0
    has '^  sim +can run; in use$'
    has "$1"
    probe 0
    has '^2 ranks on sim$'
}

# A module of this name is not there, or says that it belongs to another build.
mkdir "$tmp/none" "$tmp/other"
IRIS_MODULE_DIR=$tmp/none lacks 'cannot be loaded: .*No such file'
cat >"$tmp/other.c" <<EOF
#include <stdio.h>
__attribute__((constructor)) static void tell(void) { puts("is loaded"); }
void *iris_backend_module(void *core);
void *iris_backend_module(void *core) { return core == (void *)1 ? core : 0; }
EOF
# The compiler may be a command with options.
# shellcheck disable=SC2086
$CC $CFLAGS -shared -fPIC -o "$tmp/other/iris_hip.so" "$tmp/other.c" ||
    fail "no other module"
IRIS_MODULE_DIR=$tmp/other lacks 'belongs to another build of Iris'
has '^is loaded$'

# Ranks on the CPU have no use for it.
IRIS_MODULE_DIR=$tmp/other IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu probe 0
has '^2 ranks on sim'
! grep -q 'is loaded' "$output" || fail "a module is loaded for the CPU"

if [ -e .libs/libfakehip.so ]; then
    info 0
    has '^  hip +can run; in use$'
    has '^  0  Fake Instinct$'
    has '^     heap of fine-grained memory, pool$'
    has 'units, 64 lanes in lockstep'
    FAKEHIP_QUIRKS=wave32 info 0
    has 'units, 32 lanes in lockstep'
    IRIS_ALLOCATOR=vmem info 0
    has '^     heap of uncached memory, vmem$'
    IRIS_ALLOCATOR=vmem FAKEHIP_VERSION=70200000 info 0
    has '^     heap of ordinary memory, which GPUs cache, vmem$'
    probe 0
    has '^2 ranks on hip$'
    IRIS_SPAWN=processes probe 0
    # What says that HIP had begun is open before the program.
    late='HIP began before Iris, with 4 hardware queues'
    IRIS_SPAWN=threads probe 0
    ! grep -q 'HIP began' "$output" || fail "HIP has not begun"
    GPU_MAX_HW_QUEUES=4 IRIS_SPAWN=threads probe 0 9</dev/full
    has "rank 0, GPU 0: $late"
    has "rank 1, GPU 1: $late"
    GPU_MAX_HW_QUEUES=4 DEBUG_HIP_DYNAMIC_QUEUES=0 probe 0 9</dev/full
    ! grep -q 'HIP began' "$output" || fail "the variables were set"
    IRIS_BACKEND=sim info 0
    has '^  0  Fake Instinct$'
    FAKEHIP_DEVICES=4 FAKEHIP_NO_PEER=0-1 FAKEHIP_NO_ATOMICS=2-3 info 0
    has '^          HIP 7\.14\.0, driver 6\.4\.43483$'
    has '^  3  Fake Instinct, [0-9a-f]{4}:[0-9a-f]{2}:00\.0, 64\.0 GiB$'
    has '^    0   A  -  A  A$'
    has '^    1   -  A  A  A$'
    has '^    2   A  A  A  m$'
    has '^    3   A  A  m  A$'
    FAKEHIP_DEVICES=20 info 0
    has '^  and 4 more$'
    if command -v python3 >/dev/null; then
        FAKEHIP_DEVICES=3 FAKEHIP_NO_PEER=0-1 FAKEHIP_NO_ATOMICS=1-2 \
            info 0 --json
        python3 -c "import json, sys
hip = json.load(open(sys.argv[1]))['backends'][0]
devices = hip['devices']
sys.exit(not (hip['num_devices'] == 3 and hip['in_use'] and
    [d['access'] for d in devices] == [[0, 2], [1, 2], [0, 1, 2]] and
    [d['atomics'] for d in devices] == [[0, 2], [1], [0, 2]]))" "$output" ||
            fail "--json: other devices"
    fi
    IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu FAKEHIP_DEVICES=1 probe 0
    has '^2 ranks on sim$'
    FAKEHIP_DEVICES=0 lacks 'finds no GPU it can use'
    FAKEHIP_FAIL=hipGetDeviceCount:1+:3 lacks 'finds no GPU it can use'
elif [ "$(./iris info | grep -cE '^  hip +can run')" = 0 ]; then
    lacks 'finds no GPU it can use|cannot be loaded'
fi

[ $failed = 0 ] && echo "passed"
[ $failed = 0 ]
