#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# Programs for upstream's Python package on this library. It tests the additions
# to torch and to Triton's interpreter by kernels of this project, the examples
# in Python, and the messages of scripts/upstream-test where it cannot run.
# scripts/upstream-test runs upstream's own tests.
set -u
. "$(dirname "$0")/support/script.sh"
cd "$root" || exit 1
source=$root
here=$source/tests/python/upstream
python=${IRIS_TEST_PYTHON:-python3}

# upstream-test without what it needs: 77, and a line that says what.
refuses() { # TEXT ARGUMENT...
    local text=$1 status
    shift
    env -u IRIS_UPSTREAM python3 scripts/upstream-test "$@" >"$tmp/out" 2>&1
    status=$?
    [ "$status" != 77 ] || { grep -q "$text" "$tmp/out" && status=0; }
    verdict "upstream-test $*: $text" "$status"
}

if ! command -v python3 >/dev/null; then
    echo "skipped: python3 is not installed"
    exit 77
fi
refuses 'name a checkout'
refuses 'is no checkout' "$tmp"
mkdir -p "$tmp/upstream/tests/unittests"
PYTHON=$tmp/none refuses 'lacks what this needs' "$tmp/upstream"
[ "$(grep -c '^\(own\|launched\) [0-3][0-9]_[^ ]*\.py ' scripts/upstream-programs)" = \
    "$(grep -vc '^#' scripts/upstream-programs)" ]
verdict "upstream-programs has rows of programs only" $?

pinned=$(sed -n 's/^TRITON_VERSIONS = ("\([^"]*\)".*/\1/p' \
    python/iris_c/upstream/__init__.py)
if ! found=$("$python" -c 'import numpy, torch, triton
print(triton.__version__)' 2>"$tmp/out"); then
    echo "skipped: $python has no Triton and torch: $(tail -n 1 "$tmp/out")"
    exit $((failed ? 1 : 77))
elif [ "$found" != "$pinned" ]; then
    echo "skipped: $python has Triton $found, and these are for $pinned"
    exit $((failed ? 1 : 77))
fi

export PYTHONPATH=$source/python PYTHONDONTWRITEBYTECODE=1
export IRIS_C_LIBRARY=$build/.libs/libiris.so IRIS_HEAP_BASES_FILES=0
unset IRIS_BACKEND IRIS_SIM_DEVICE IRIS_SIMULATION IRIS_ALLOCATOR

ranks() { # RANKS PROGRAM ARGUMENT...
    local count=$1
    shift
    (cd "$tmp" && timeout -k 10 400 "$python" -m iris_c.upstream \
        --device cpu -n "$count" "$@") >"$tmp/out" 2>&1
    verdict "$count ranks: ${1##*/} ${*:2}" $?
}

ranks 1 "$here/run.py" one_rank
ranks 2 "$here/run.py" two_ranks
ranks 2 "$here/lose_peer.py"
grep -q 'ended: rank 1 was lost while instance (0, 0, 0) of wait' \
    "$tmp/out" || verdict 'the message says which rank' 1
ranks 2 "$source/examples/python/message_passing.py"
ranks 4 "$source/examples/python/all_reduce.py"
ranks 4 "$source/examples/python/producer_consumer.py"

# The launcher on a program of its own: its status is $status, its text in the
# log. Programs that import no torch are quick.
launch() { # ARGUMENT...
    "$python" -m iris_c.upstream --device cpu --any-triton "$@" >"$tmp/out" 2>&1
    status=$?
}

# The launcher's status is that of the first rank that failed.
echo 'import os, sys; sys.exit(7 * int(os.environ["RANK"]))' >"$tmp/fail.py"
launch -n 2 "$tmp/fail.py"
[ "$status" = 7 ]
verdict "a rank that ends with 7 ends the launcher with $status" $?

# A program alone may start its own ranks: no launcher's variables are there.
echo 'import os; print([name for name in os.environ if "RANK" in name])' \
    >"$tmp/alone.py"
(unset "${!IRIS_@}" && launch -n 1 "$tmp/alone.py"; grep -qx '\[\]' "$tmp/out")
verdict "one process alone has no RANK" $?
echo 'import torch.distributed as dist
dist.init_process_group("gloo"); print(dist.get_rank(), dist.get_world_size())' \
    >"$tmp/group.py"
launch -n 1 "$tmp/group.py" && grep -qx '0 1' "$tmp/out"
verdict "one process alone is rank 0 of 1" $?

# SIGINT ends the ranks, also where a shell has started this in the background.
echo 'import os, signal
print(os.getpid(), flush=True)
signal.pause()' >"$tmp/pause.py"
"$python" -m iris_c.upstream --device cpu --any-triton -n 2 "$tmp/pause.py" \
    >"$tmp/out" 2>&1 &
launcher=$!
for ((i = 0; i < 600; i++)); do
    [ "$(wc -l <"$tmp/out")" = 2 ] && break
    sleep 0.1
done
kill -INT $launcher
wait $launcher
status=$?
left=$(grep -x '[0-9]*' "$tmp/out" | xargs -r ps -o pid= -p | wc -l)
[ "$status $left" = "130 0" ]
verdict "SIGINT: status $status, $left ranks left" $?

# What is not installed is stood in for, and said; a relative folder will do.
echo 'import iris' >"$tmp/iris_alone.py"
printf '%s\n' 'from tritonblas.kernels.stages import GemmContext as C' \
    'import tritonblas' 'assert tritonblas.f is not None' \
    'try: C(); raise SystemExit(1)' \
    'except RuntimeError as error: print(error)' >"$tmp/needs.py"
mkdir -p "$tmp/blas/include/tritonblas"
echo 'import origami
def f(x: origami.problem_t): pass' >"$tmp/blas/include/tritonblas/origami.py"
echo 'from . import origami' >"$tmp/blas/include/tritonblas/__init__.py"
launch --tritonblas "$tmp/none" "$tmp/needs.py"
[ "$status" = 0 ] && grep -q 'tritonblas.GemmContext is needed' "$tmp/out"
verdict "a missing tritonblas is stood in for" $?
launch --tritonblas "$tmp/none" "$tmp/iris_alone.py"
grep -q 'tritonblas is not installed: its names' "$tmp/out"
verdict "which is said" $?
(cd "$tmp" && launch --tritonblas blas "$tmp/iris_alone.py"
    grep -q 'origami is not installed: its names' "$tmp/out")
verdict "so is a missing origami" $?
(cd "$tmp" && launch --stand-in --tritonblas blas "$tmp/iris_alone.py"
    ! grep -q 'origami' "$tmp/out")
verdict "--stand-in says nothing" $?
echo 'import tritonblas; print(tritonblas.origami.f)' >"$tmp/needs.py"
(cd "$tmp" && launch --tritonblas blas "$tmp/needs.py"
    [ "$status" = 0 ])
verdict "the stand-in has origami's names" $?
exit $((failed > 0))
