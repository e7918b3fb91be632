#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The module of the GPU backend as a program meets it: there and at work, with
# no GPU, without its runtime, not installed, of another build. What can be seen
# depends on the build and the machine.
set -u
: "${CC:=cc}" "${CFLAGS:=}" "${IRIS_MODULE_DIR:=}"
[ -e "$IRIS_MODULE_DIR/iris_hip.so" ] || exit 77
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
output=$folder/output
unset IRIS_BACKEND IRIS_SIM_DEVICE IRIS_SIMULATION

# Runs iris-info and expects an exit status: info STATUS ARGUMENT...
info() {
    local expected=$1 ret
    shift
    ./iris-info "$@" >"$output" 2>&1
    ret=$?
    [ $ret = "$expected" ] || fail "iris-info $* exits with $ret"
}

fail() {
    echo "FAILED: $*"
    cat "$output"
    failed=$((failed + 1))
}

# Expects a line that matches.
has() { # PATTERN
    grep -qE "$1" "$output" || fail "no line like: $1"
}

# hip cannot run, for this reason; what else there is works.
lacks() { # PATTERN
    IRIS_BACKEND=hip info 1
    has "! none in use: .*backend \"hip\".*$1"
    has 'IRIS_BACKEND=sim'
    IRIS_BACKEND=hip info 1 --check
    has "^check: FAILED: IRIS_ERR_BACKEND.*$1"
    IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu info 1
    has "$1"
    info 0
    has '^  sim +can run; in use$'
    has "$1"
    info 0 --check
    has '^check: 2 ranks on sim wrote into each other.s heaps: ok$'
}

# A module of this name is not there, or says that it belongs to another build.
mkdir "$folder/none" "$folder/other"
IRIS_MODULE_DIR=$folder/none lacks 'cannot be loaded: .*No such file'
cat >"$folder/other.c" <<EOF
#include <stdio.h>
__attribute__((constructor)) static void tell(void) { puts("is loaded"); }
void *iris_backend_module(void *core);
void *iris_backend_module(void *core) { return core == (void *)1 ? core : 0; }
EOF
# The compiler may be a command with options.
# shellcheck disable=SC2086
$CC $CFLAGS -shared -fPIC -o "$folder/other/iris_hip.so" "$folder/other.c" ||
    fail "no other module"
IRIS_MODULE_DIR=$folder/other lacks 'belongs to another build of Iris'
has '^is loaded$'

# Ranks on the CPU have no use for it.
IRIS_MODULE_DIR=$folder/other IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu info 0 --check
has '^check: 2 ranks on sim'
! grep -q 'is loaded' "$output" || fail "a module is loaded for the CPU"

if [ -e .libs/libfakehip.so ]; then
    info 0
    has '^  hip +can run; in use$'
    has '^  0  Fake Instinct$'
    info 0 --check
    has '^check: 2 ranks on hip wrote into each other.s heaps: ok$'
    IRIS_SPAWN=processes info 0 --check
    IRIS_BACKEND=sim info 0
    has '^  0  Fake Instinct$'
    IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu FAKEHIP_DEVICES=1 info 0 --check
    has '^check: 2 ranks on sim wrote into each other.s heaps: ok$'
    FAKEHIP_DEVICES=0 lacks 'finds no GPU it can use'
    FAKEHIP_FAIL=hipGetDeviceCount:1+:3 lacks 'finds no GPU it can use'
elif [ "$(./iris-info | grep -cE '^  hip +can run')" = 0 ]; then
    lacks 'finds no GPU it can use|cannot be loaded'
fi

[ $failed = 0 ] && echo "passed"
[ $failed = 0 ]
