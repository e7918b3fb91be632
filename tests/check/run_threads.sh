#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# iriscc --check: IRIS_CHECK=race finds races between threads of a host at their
# lines (tests/check/threads.c says which), and is silent about correct programs.
set -u
srcdir=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
case "${CFLAGS-} ${CC-}" in
*sanitize*) echo "--check does not go with a sanitizer" && exit 77 ;;
esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$PWD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu OMP_WAIT_POLICY=passive
cases=$srcdir/tests/check/threads.c
failed=0
cc=${CC:-cc}

compile() { # COMPILER OUTPUT [OPTION...]
    local compiler=$1 output=$2
    shift 2
    IRISCC_CC=$compiler ./iriscc --check --cpu-only -std=gnu11 -O1 -pthread -fopenmp \
        -Iinclude -I"$srcdir/include" -L.libs -L. -o "$output" "$@" "$cases"
}

complain() { # WHAT
    echo "FAILED: $1"
    cat "$dir/log"
    failed=1
}

# Exits with 3 for a race, and names each line of the bug.
finds() { # NAME RANKS
    local number
    IRIS_CHECK=race "$dir/threads" "$1" 1 "$2" 2>"$dir/log"
    [ $? = 3 ] || return 1
    for number in $(grep -n "bug $1 " "$cases" | cut -d: -f1); do
        grep -q "threads.c:$number\>" "$dir/log" || return 1
    done
}

is_silent() { # NAME RANKS
    IRIS_CHECK=race "$dir/threads" "$1" 0 "$2" 2>"$dir/log"
}

check_all() { # SPAWN RANKS
    local name
    export IRIS_SPAWN=$1
    for name in "${names[@]}"; do
        case $name in
        clean_*) ;;
        *) finds "$name" "$2" || complain "bug $name, $*" ;;
        esac
        is_silent "$name" "$2" || complain "twin $name, $*"
    done
}

compile "$cc" "$dir/threads" || exit 1
mapfile -t names < <("$dir/threads")
check_all threads 2
if [ "${IRIS_TEST_LONG:-0}" != 0 ]; then
    check_all processes 3
    check_all threads 4
    for ((seed = 1; seed <= 20; seed++)); do
        for name in "${names[@]}"; do
            IRIS_SEED=$seed is_silent "$name" 2 || complain "twin $name, seed $seed"
        done
    done
    if command -v clang >/dev/null && compile clang "$dir/threads"; then
        for name in "${names[@]}"; do # libomp's threads count as one
            is_silent "$name" 2 || complain "twin $name, clang"
        done
    fi
else
    IRIS_SPAWN=processes
    finds lock 2 || complain "processes"
fi
exit $failed
