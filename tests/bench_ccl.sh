#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# iris bench for collectives: its options, columns, peers, tuning file and
# picture, and scripts/gpu-test --phase ccl over the fake HIP runtime. It checks
# no times.
set -u
export LC_ALL=C
. "$(dirname "$0")/support/script.sh"
iris=$build/iris
: "${MPIRUN=}" "${CC:=cc}"
go_apart
few="--sizes 64:4K:8 --iterations 3"
# ends STATUS NAME COMMAND...
ends() {
    local expected=$1 name=$2 ret
    shift 2
    timeout -k 10 300 "$@" >out 2>err
    ret=$?
    [ $ret = "$expected" ]
    verdict "$name" $?
}

# A bad option: status 2, and a message with what it accepts.
refuses() { # WORD OPTION...
    local word=$1
    shift
    timeout -k 10 60 "$iris" bench "$@" >out 2>err
    [ $? = 2 ] && grep -q -e "$word" err && [ ! -s out ]
    verdict "refuses $*" $?
}

# shellcheck disable=SC2086 # options are many words
rows() {
    local type variant
    ends 0 "every type and variant" "$iris" bench -o collectives $few --dtypes all \
        --variants all --calls all --format csv
    for type in i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64; do
        grep -q "^collectives,all_to_all,pull,.*,$type,waited," out
        verdict "rows of $type" $?
    done
    for variant in one_shot two_shot one_shot_packet two_shot_packet; do
        grep -q "^collectives,all_reduce,$variant," out
        verdict "rows of $variant" $?
    done
    awk -F, 'NR == 1 { n = NF } NF != n { exit 1 } END { exit NR < 1000 }' out
    verdict "as many columns in every row" $?
    ! grep -q '^collectives,all_reduce,push,' out
    verdict "no variant of another operation" $?

    # Bus bandwidth of 4 ranks: 1.5 and 0.75 times the rate.
    ends 0 "4 ranks" "$iris" bench -n 4 -o collectives $few --format csv
    awk -F, 'NR > 1 {
            share = $2 == "all_reduce" ? 1.5 : $2 == "broadcast" ? 1 : 0.75
            if ($20 < 0.999 * share * $12 || $20 > 1.001 * share * $12) exit 1
        }' out
    verdict "bus bandwidth" $?
    ends 0 "sizes by a factor" "$iris" bench -o all_reduce -s 16:1K:8 --iterations 1 \
        --format csv
    [ "$(awk -F, 'NR > 1 { printf "%s ", $8 }' out)" = "16 128 1024 " ]
    verdict "16, 128, 1024" $?
    ends 0 "table" "$iris" bench -o all_reduce $few
    grep -q 'bus GB/s' out
    verdict "the table has bus bandwidth" $?
}

options() {
    refuses f64 --dtypes f128
    refuses f64 --dtypes bool
    refuses two_shot --variants three_shot
    refuses waited --calls never
    refuses FACTOR --sizes 1:8:1
    refuses FACTOR --sizes 1:8:2:2
    refuses 'number above 0' --tune-seconds 0
}

# No library, or not under mpirun: a message and status 1.
# shellcheck disable=SC2086
no_peer() {
    ends 1 "no peer" env LD_LIBRARY_PATH= "$iris" bench -o all_reduce $few --peer
    grep -qE -e '--peer: rank 0: (neither RCCL nor NCCL|MPI has not|the peer on a CPU)' err
    verdict "says why there is no peer" $?
}

# shellcheck disable=SC2086
mpi_peer() {
    if [ -z "$MPIRUN" ] || ! grep -q 'HAVE_MPI 1' "$build/config.h"; then
        echo "left out: MPI as a peer, built without"
        return
    fi
    ends 0 "MPI as a peer" env IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu \
        ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" "$MPIRUN" --oversubscribe \
        -n 3 "$iris" bench -o collectives $few --dtypes f32,i16,bf16 --peer --format json
    cp out mpi.json
    [ "$(grep -c '"reference": ".*MPI' out)" = \
        "$(grep -cE '"dtype": "(f32|i16)"' out)" ] && grep -q '"time_ratio": [0-9]' out
    verdict "MPI beside every row but those of bf16" $?
}

# The peer on GPUs by a library of the test's own.
# shellcheck disable=SC2086
rccl_peer() {
    [ -e "$build/.libs/libfakehip.so" ] || return
    mkdir lib
    $CC -shared -fPIC -pthread -o lib/librccl.so.1 "$here/fake_rccl.c" || {
        verdict "the fake RCCL compiles" 1
        return
    }
    local fake="env IRIS_BACKEND=hip FAKEHIP_DEVICES=3 LD_LIBRARY_PATH=$tmp/lib"
    local points="-n 3 -o collectives -s 1K:64K:8 --iterations 500 --peer"
    ends 0 "RCCL as a peer" $fake "$iris" bench $points --calls all --format csv
    [ "$(grep -c ',RCCL 2.18.5,' out)" = "$(grep -c ^collectives out)" ] &&
        grep -q ',graph,' out
    verdict "RCCL beside every row" $?
    ends 1 "wrong values of a peer are seen" $fake FAKE_RCCL_WRONG=1 \
        "$iris" bench $points
    grep -q 'VALUES WRONG' out
    verdict "and named" $?
    ends 0 "a type that the peer lacks" $fake "$iris" bench $points --dtypes i16
}

# The tuning file is whole or not there.
# shellcheck disable=SC2086
tuning() {
    # No matter how busy this machine is.
    local always="--spread 1000000000"
    ends 0 "--tune" "$iris" bench -n 3 -o collectives $few $always --tune tuning
    awk 'NR == 1 && $0 == "format 2" { format = 1; next }
        /^#/ { next }
        !/^(all_reduce|all_gather|reduce_scatter|all_to_all|broadcast) (cpu|gpu) =3 [0-9]+ [a-z_]+ 0 # [0-9.]+ us(; [a-z_]+ [+-][0-9]+ %)?$/ { exit 1 }
        $2 == "cpu" && $5 == "one_shot" || $4 > 4096 || $4 <= last[$1] { exit 1 }
        { last[$1] = $4 }
        END { n = 0; for (op in last) n++; exit n != 5 || !format }' tuning
    verdict "rules of each operation, for what was measured" $?
    grep -qE 'at most [1-9][0-9]* measurements of .* ends within about 120 s' err
    verdict "says how long it may take" $?
    grep -qE '^all_reduce +[0-9]+ +[a-z_]+ +[0-9.]+ us; [a-z_]+ [+-][0-9]+ %$' out
    verdict "prints each choice beside the second best" $?
    ends 0 "--tune without time" "$iris" bench -n 2 -o broadcast $few \
        $always --tune-seconds 0.000001 --tune late
    grep -q 'no time for all of broadcast' err &&
        [ -s late ] && ! grep -qvE '^(#|format)' late
    verdict "leaves all to the library" $?
    ends 1 "repeats that disagree" "$iris" bench -n 2 -o all_reduce $few --spread 0 \
        --tune busy
    grep -q 'repeated measurements disagree.*the machine is busy; nothing is written' err &&
        [ ! -e busy ] && [ ! -e busy.part ]
    verdict "are said, and leave no file" $?
    ends 2 "--tune without a collective" "$iris" bench -n 2 -o matmul_all_reduce \
        $always --tune none
    grep -q 'tune measures collectives' err && [ ! -e none ]
    verdict "is refused" $?
    grep -q '^# .*Iris [0-9].*3 ranks' tuning
    verdict "the file says where it is from" $?
    if "$build/iris" info 2>/dev/null | grep -q IRIS_CCL_TUNING; then
        ends 0 "the library takes it" env IRIS_CCL_TUNING="$tmp/tuning" \
            "$iris" bench -n 3 -o collectives $few
    fi
    cp tuning before
    ln -s /dev/full tuning.part
    ends 1 "a full disk" "$iris" bench -o broadcast -s 64 --iterations 1 \
        $always --tune tuning
    grep -q 'tuning": No space left' err && cmp -s tuning before &&
        [ ! -e tuning.part ] && [ ! -L tuning.part ]
    verdict "is said, and leaves the file as it was" $?
    ends 1 "no such folder" "$iris" bench -o broadcast -s 64 --iterations 1 $always \
        --tune none/tuning
    grep -q 'none/tuning": No such file' err
    verdict "is said" $?
}

plot() {
    local json=mpi.json python=
    for python in python3 /usr/bin/python3 ''; do
        [ -z "$python" ] || ! $python -c 'import matplotlib' 2>/dev/null || break
    done
    [ -s $json ] || "$iris" bench -o collectives --sizes 64:4K:8 --iterations 3 \
        --format json --output $json
    if [ -z "$python" ]; then
        ends 77 "no Matplotlib" "$here/../scripts/bench-plot" $json
        return
    fi
    ends 0 "a picture" "$python" "$here/../scripts/bench-plot" $json plot.png
    [ "$(head -c 4 plot.png | tail -c 3)" = PNG ]
    verdict "that is one" $?
    ends 1 "a report that is none" "$python" "$here/../scripts/bench-plot" before
    ends 1 "a picture on a full disk" "$python" "$here/../scripts/bench-plot" \
        $json none/plot.png
}

# The whole phase, small.
phase() { # GPUS PATTERN
    ends 0 "gpu-test --phase ccl, $1" env -u IRIS_BACKEND -u IRIS_SIM_DEVICE \
        IRIS_GPU_BUILD="$build" IRIS_TEST_FAKE_GPUS="$1" IRIS_TEST_LOGS="$tmp/logs" \
        IRIS_TEST_CCL="-s 64:4K:8 --iterations 3" \
        "$here/../scripts/gpu-test" --phase ccl
    grep -q "$2" out && [ -s logs/ccl.json ] &&
        tail -n 1 out | grep -qE '^ +4K( +[0-9.]+ +- +-){4}$'
    verdict "a table, last" $?
}

# What src/ccl/choices has, of each number of ranks, by processes.
phase_tune() {
    ends 0 "gpu-test --phase tune" env -u IRIS_BACKEND -u IRIS_SIM_DEVICE \
        IRIS_GPU_BUILD="$build" IRIS_TEST_FAKE_GPUS=2 IRIS_TEST_LOGS="$tmp/logs" \
        IRIS_TEST_TUNE="$few --spread 1000000000 --tune-seconds 10" \
        "$here/../scripts/gpu-test" --phase tune
    grep -q '^skipped: tune, 4 ranks' out && grep -q '(processes)' logs/choices-2 &&
        grep -q '^all_gather gpu =2 ' logs/choices-2
    verdict "choices of two ranks" $?
}

[ -x "$iris" ] || { echo "no $iris" && exit 1; }
rows
options
no_peer
mpi_peer
rccl_peer
tuning
plot
if [ -e "$build/.libs/libfakehip.so" ]; then
    phase 1 '^no peer: NCCL wants a GPU for each rank'
    phase 2 '^no peer: rank 0: neither RCCL nor NCCL'
    phase_tune
fi
[ $failed = 0 ]
