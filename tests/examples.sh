#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build gpus
#
# Runs every example with small buffers in each way of making ranks. The
# examples verify their results. Also checks that each rank writes its heap
# bases.
set -u
: "${MPIRUN=}"
. "$(dirname "$0")/support/script.sh"
examples=$build/examples
log=$tmp/out
export TMPDIR=$tmp # two mpiruns that share a folder get in each other's way
for variable in $(compgen -e IRIS_); do
    case $variable in # where to run stays
    *_BACKEND | *_MODULE_DIR | *_SIM_DEVICE | *_TEST_EXAMPLES | *_TEST_MAX_RANKS) ;;
    *) unset "$variable" ;;
    esac
done
export IRIS_TIMEOUT_MS=120000
# Open MPI leaks from parts it has unloaded: there is no name to suppress.
mpi_asan_options=${ASAN_OPTIONS-}:detect_leaks=0

# Runs COMMAND, an example with RANKS ranks: one LABEL RANKS COMMAND...
one() {
    local label=$1 ranks=$2 rank verdict=passed
    shift 2
    if [ "$ranks" -gt "${IRIS_TEST_MAX_RANKS:-$ranks}" ]; then
        echo "left out: $label"
        return
    fi
    rm -f "$tmp"/bases_rank_*
    IRIS_HEAP_BASES_PREFIX=$tmp/bases timeout -k 10 300 "$@" >"$log" 2>&1 ||
        verdict="FAILED ($?)"
    for ((rank = 0; rank < ranks; rank++)); do
        grep -q "\"rank\": $rank," "$tmp/bases_rank_${rank}_heap_bases.json" ||
            verdict="FAILED (no heap bases of rank $rank)"
    done
    grep -qE '^ +(rank  0|size) ' "$log" && grep -q "heap bases are in $tmp/bases_rank_" "$log" ||
        verdict="FAILED (no table, or not where the heap bases are)"
    echo "$verdict: $label"
    [ "$verdict" = passed ] || { tail -n 30 "$log"; failed=$((failed + 1)); }
}

# IRIS_TEST_EXAMPLES=threads: 4 of them, and no other way.
counts="1 2 4" threads_only=0
[ "${IRIS_TEST_EXAMPLES-}" != threads ] || counts=4 threads_only=1

# An odd size: a last tile and workgroups that have less.
small="--bytes 40004 --iterations 2"
count=0
for program in "$examples"/[01]?_*; do
    name=${program##*/}
    case $name in *[.*]*) continue ;; esac # objects, or no file at all
    count=$((count + 1))
    # Word splitting is meant: options.
    # shellcheck disable=SC2086
    for ranks in $counts; do
        one "$name, $ranks threads" $ranks "$program" -n $ranks $small
    done
    [ $threads_only = 0 ] || continue
    # shellcheck disable=SC2086
    one "$name, 4 processes" 4 env IRIS_SPAWN=processes IRIS_NUM_RANKS=4 \
        "$program" $small
    # shellcheck disable=SC2086
    [ -z "$MPIRUN" ] || one "$name, 4 by mpirun" 4 \
        env ASAN_OPTIONS="$mpi_asan_options" \
        "$MPIRUN" --oversubscribe -n 4 "$program" $small
done

[ $count -gt 0 ] || { echo "FAILED: no examples in $examples" && exit 1; }

# Fewer workgroups than tiles, more than run at once, and one element.
for name in 06_message_passing_load_store 07_message_passing_put \
    08_one_shot_all_reduce 10_product_all_scatter 11_product_atomics \
    12_product_all_reduce 13_producer_consumer 14_flash_decode; do
    one "$name, 1 workgroup" 4 "$examples/$name" -w 1 -b 100K -i 2
    one "$name, 9 workgroups" 4 "$examples/$name" -w 9 -b 400K -i 2
    one "$name, 4 bytes" 4 "$examples/$name" -b 4 -i 2
done

# What cannot work says so.
if "$examples/00_load" --bytes none >"$log" 2>&1 || [ $? != 2 ]; then
    echo "FAILED: --bytes none"
    failed=$((failed + 1))
fi
if IRIS_HEAP_BASES_PREFIX=$tmp/bases IRIS_HEAP_SIZE=1M \
    "$examples/00_load" -n 1 >"$log" 2>&1 ||
    ! grep -q 'IRIS_ERR_NO_MEMORY.*IRIS_HEAP_SIZE' "$log"; then
    echo "FAILED: buffers larger than the heap"
    cat "$log"
    failed=$((failed + 1))
fi
[ $failed = 0 ]
