#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# iriscc --check: IRIS_CHECK=race finds races between threads of a host, and between
# lanes of a workgroup, at their lines (tests/check/threads.c and lanes.c say which),
# and is silent about correct programs.
set -u
srcdir=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
case "${CFLAGS-} ${CC-}" in
*sanitize*) echo "--check does not go with a sanitizer" && exit 77 ;;
esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$PWD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu OMP_WAIT_POLICY=passive
failed=0

compile() { # COMPILER
    local program
    for program in threads lanes; do
        IRISCC_CC=$1 ./iriscc --check --cpu-only -std=gnu11 -O1 -pthread -fopenmp \
            -Iinclude -I"$srcdir/include" -L.libs -L. -o "$dir/$program" \
            "$srcdir/tests/check/$program.c" || return 1
    done
}

complain() { # WHAT
    echo "FAILED: $1"
    cat "$dir/log"
    failed=1
}

# Exits with 3 for a race, and names each line of the bug.
finds() { # PROGRAM NAME RANKS
    local number
    IRIS_CHECK=race "$dir/$1" "$2" 1 "$3" 2>"$dir/log"
    [ $? = 3 ] || return 1
    for number in $(grep -n "bug $2 " "$srcdir/tests/check/$1.c" | cut -d: -f1); do
        grep -q "$1.c:$number\>" "$dir/log" || return 1
    done
}

is_silent() { # PROGRAM NAME RANKS
    IRIS_CHECK=race "$dir/$1" "$2" 0 "$3" 2>"$dir/log"
}

check_all() { # SPAWN RANKS
    local program name
    export IRIS_SPAWN=$1
    while read -r program name; do
        case $name in
        clean_*) ;;
        *) finds "$program" "$name" "$2" || complain "bug $name, $*" ;;
        esac
        is_silent "$program" "$name" "$2" || complain "twin $name, $*"
    done <<<"$cases"
}

# Twins only.
check_twins() { # WHAT
    local program name
    while read -r program name; do
        is_silent "$program" "$name" 2 || complain "twin $name, $1"
    done <<<"$cases"
}

# libomp's regions, with threads that may be late; a task makes its threads count as
# one.
check_libomp() {
    local name
    for name in $("$dir/threads" | grep '^omp_'); do
        case $name in
        *task*) ;;
        omp_names) # clang makes one access of both, which has no line
            IRIS_CHECK=race "$dir/threads" "$name" 1 2 2>"$dir/log"
            [ $? = 3 ] || complain "bug $name, libomp"
            ;;
        *) finds threads "$name" 2 || complain "bug $name, libomp" ;;
        esac
        is_silent threads "$name" 2 || complain "twin $name, libomp"
    done
    is_silent threads clean_omp_tasks 2 || complain "tasks, libomp"
    is_silent threads clean_omp_loops 2 || complain "loops, libomp"
}

compile "${CC:-cc}" || exit 1
cases=$("$dir/threads" | sed 's/^/threads /' && "$dir/lanes" | sed 's/^/lanes /')
check_all threads 2
# Advice: a lock for threads, a barrier for lanes.
finds threads lock 2 && grep -q "hold one lock at both threads.c" "$dir/log" || complain "lock"
finds lanes signal_of_leader 2 &&
    grep -q "covers the writes of its own lane only: call iris_wg_barrier between lanes.c" \
        "$dir/log" || complain "cover"
if [ "${IRIS_TEST_LONG:-0}" != 0 ]; then
    check_all processes 3
    check_all threads 4
    for ((seed = 1; seed <= 20; seed++)); do
        IRIS_SEED=$seed check_twins "seed $seed"
    done
else
    IRIS_SPAWN=processes
    finds threads lock 2 || complain "processes"
    IRIS_SPAWN=threads
fi
if command -v clang >/dev/null && compile clang 2>/dev/null; then # has libomp
    check_libomp
    [ "${IRIS_TEST_LONG:-0}" = 0 ] || check_twins clang
fi
exit $failed
