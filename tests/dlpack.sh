#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# NumPy and PyTorch exchange tensors with the heap by DLPack, in both
# directions: with this build's library, in a Python that has them, as one rank
# and as two.
set -u
. "$(dirname "$0")/support/script.sh"
library=$PWD/.libs/libiris.so
ran=0

# Arrays of other libraries are of the host's memory here.
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_HEAP_SIZE=4M
case ${CFLAGS-} in
*-fsanitize=*)
    echo "skipped: Python is not made for sanitizers"
    exit 77 ;;
esac

# A Python that has the module.
find_python() { # MODULE
    local python
    for python in "${PYTHON:-python3}" /usr/bin/python3; do
        "$python" -c "import $1" >/dev/null 2>&1 && echo "$python" && return
    done
    return 1
}

# run PYTHON MODULE RANKS
run() {
    local rank pids=()
    for ((rank = 0; rank < $3; rank++)); do
        (cd "$tmp" && IRIS_RANK=$rank IRIS_NUM_RANKS=$3 IRIS_JOB_ID=$2.$3.$$ \
            timeout -k 10 200 "$1" "$here/tensor/dlpack.py" "$library" "$2" \
            >"$tmp/$rank" 2>&1) &
        pids+=($!)
    done
    for ((rank = 0; rank < $3; rank++)); do
        wait "${pids[rank]}" || {
            echo "FAILED: $2, rank $rank of $3:"
            tail -n 20 "$tmp/$rank"
            failed=1
        }
        grep '^rank' "$tmp/$rank"
    done
}

for module in numpy torch; do
    if python=$(find_python $module); then
        run "$python" $module 1
        run "$python" $module 2
        ran=1
    else
        echo "left out: no Python with $module"
    fi
done
[ $failed = 0 ] || exit 1
[ $ran = 1 ] || exit 77
