#!/bin/bash
# SPDX-License-Identifier: MIT
#
# iris-info: says what there is, names a setting that does not parse, and prints
# the table of settings that the README has.
set -u
here=$(cd "$(dirname "$0")" && pwd)
readme=$here/../README.md
failed=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT
module=${IRIS_MODULE_DIR-}/iris_hip.so # tests/hip.sh is about it
for variable in $(compgen -e IRIS_); do
    unset "$variable"
done
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu

fail() {
    echo "FAILED: $*"
    cat "$output"
    failed=$((failed + 1))
}

# Runs iris-info and expects an exit status: info STATUS ARGUMENT...
info() {
    local expected=$1 ret
    shift
    ./iris-info "$@" >"$output" 2>&1
    ret=$?
    [ $ret = "$expected" ] || fail "iris-info $* exits with $ret"
}

# Expects a line that matches.
has() { # PATTERN
    grep -qE "$1" "$output" || fail "no line like: $1"
}

info 0
has '^iris [0-9]+\.[0-9]+\.[0-9]+$'
has '^  sim +can run; in use$'
[ -e "$module" ] || has '^  hip +not in this build$'
has '^  0  .'
has '4 workgroups of a kernel at once'
has '^MPI$'
has '^  IRIS_HEAP_SIZE +1G +default '

IRIS_HEAP_SIZE=64M IRIS_SIM_CUS=3 info 0
has '^  IRIS_HEAP_SIZE +64M +environment '
has '3 workgroups of a kernel at once'

IRIS_HEAP_SIZE=lots IRIS_LOG_LEVEL=loud info 1
has '^! IRIS_HEAP_SIZE +lots +BAD '
has '^! IRIS_LOG_LEVEL +loud +BAD '
has '^  ! .*IRIS_HEAP_SIZE="lots" does not parse; it takes: a size'
has '^  ! .*IRIS_LOG_LEVEL="loud" does not parse; it takes: debug'

IRIS_BACKEND=nonsense info 1
has '! none in use: .*nonsense'
[ -e "$module" ] || {
    IRIS_BACKEND=hip info 1
    has '! none in use: .*not in this build'
    IRIS_BACKEND=hip info 1 --check
    has '^check: FAILED: IRIS_ERR_BACKEND'
}
IRIS_SIMULATION=1 IRIS_BACKEND=hip info 1
has '! .*IRIS_SIMULATION.*IRIS_BACKEND'

info 0 --check
has '^check: 2 ranks on sim wrote into each other.s heaps: ok$'
IRIS_SPAWN=processes info 0 --check

info 0 --version
has '^iris-info [0-9.]+$'
info 0 --help
has '^usage: '
info 2 --nonsense
info 2 nonsense

info 0 --env-markdown
awk '/^<!-- settings/ { inside = 1; next }
     /^<!-- \/settings/ { inside = 0 }
     inside' "$readme" | diff - "$output" ||
    fail "README.md's table of settings is not what iris-info prints"

[ $failed = 0 ] && echo "passed"
[ $failed = 0 ]
