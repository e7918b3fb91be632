#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# iris bench at tiny sizes: every operation runs with right values, each format
# is well formed, and options work. It checks no times.
set -u
export LC_ALL=C
. "$(dirname "$0")/support/script.sh"
iris=$build/iris
: "${MPIRUN=}" "${CC:=cc}"
go_apart
tiny="--sizes 8:1K --shapes 3x5x7 --iterations 3 --live 200 --init-heap 16M"
# Word splitting is meant: options are many words.
# shellcheck disable=SC2086
succeeds() { # NAME COMMAND...
    local name=$1
    shift
    timeout -k 10 300 "$@" >out 2>err
    verdict "$name" $?
}

# A bad option: status 2, nothing on stdout, a message that names what is wrong.
refuses() { # WORD OPTION...
    local word=$1
    shift
    timeout -k 10 60 "$iris" bench "$@" >out 2>err
    [ $? = 2 ] && [ ! -s out ] && grep -q -e "$word" err &&
        grep -q -e --help err
    verdict "refuses $*" $?
}

# Every operation that --list names has a row.
all_there() { # FILE
    local op missing=1
    for op in $("$iris" bench --list | grep '^  '); do
        grep -q -w "$op" "$1" || { echo "no row of $op" && return 1; }
        missing=0
    done
    return $missing
}

parses() { # NAME FILE: as JSON
    if ! command -v python3 >/dev/null; then
        echo "left out: $1, no python3 to tell"
        return
    fi
    python3 -m json.tool "$2" >/dev/null
    verdict "$1" $?
}

# shellcheck disable=SC2086
formats() {
    succeeds "table" "$iris" bench $tiny --type all
    grep -q "median us" out && all_there out
    verdict "table has units and every operation" $?

    succeeds "csv" "$iris" bench $tiny --type all --format csv
    awk -F, 'NR == 1 { n = NF } NF != n { exit 1 } END { exit NR < 2 }' out &&
        all_there out
    verdict "csv has as many columns in every row" $?

    succeeds "json to a file" "$iris" bench $tiny --format json --output report.json
    [ ! -s out ] && all_there report.json
    verdict "json has every operation, and nothing is printed" $?
    parses "json parses" report.json
}

# shellcheck disable=SC2086
ways_of_running() {
    local pairs
    for pairs in ring all one; do
        succeeds "3 ranks, $pairs" "$iris" bench --ranks 3 --pairs $pairs $tiny
        succeeds "3 processes, $pairs" env IRIS_SPAWN=processes \
            "$iris" bench --ranks 3 --pairs $pairs --workgroups 3 $tiny
    done
    succeeds "1 rank" "$iris" bench --ranks 1 $tiny
    succeeds "2 nodes" env IRIS_NODES=2 "$iris" bench $tiny --ops lanes,bulk,kernels,sync,nodes \
        --format csv
    ! grep -qE ',(plain|memcpy),' out && grep -q '^lanes,load,' out
    verdict "another node's memory has no plain accesses to compare with" $?
    succeeds "workgroups as many as compute units" \
        "$iris" bench --workgroups 0 --block 7 --ops bulk,launch $tiny
    succeeds "a sweep" "$iris" bench --ops put_d8 --sizes 8:4K --iterations 1 \
        --format csv
    grep -q '^depth,put_d8,1 wg,ring,2,1,256,4096,' out &&
        grep -q '^depth,put_d8,2 wg,ring,2,2,256,4096,' out
    verdict "a sweep has a row for each grid" $?
    succeeds "sizes below a word" "$iris" bench --ops bulk,stream --sizes 1:4 \
        --iterations 1
    # Open MPI leaks from parts it has unloaded: there is no name to suppress.
    [ -z "$MPIRUN" ] || succeeds "2 ranks by mpirun" \
        env ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" \
        "$MPIRUN" --oversubscribe -n 2 "$iris" bench $tiny --format json
    [ -z "$MPIRUN" ] || parses "one report of them all" out
    ! compgen -G '*heap_bases*' >/dev/null
    verdict "no file left in the working folder" $?
}

# A line like "[1/9] put 2M" in runs that take long, on a terminal only.
progress() {
    local line='\[[0-9]*/[0-9]*\] '
    local long="--ops wg_put,wg_get --sizes 1M:4M --seconds 0.6"
    if ! script -qec true /dev/null >/dev/null 2>&1; then
        echo "skipped: no script(1) to make a terminal"
        return
    fi
    script -qec "$iris bench $long" /dev/null >out 2>&1 </dev/null
    grep -q "$line" out
    verdict "a terminal sees progress" $?
    script -qec "$iris bench $long --no-progress" /dev/null >out 2>&1 </dev/null
    ! grep -q "$line" out
    verdict "--no-progress hides it" $?
    # shellcheck disable=SC2086
    "$iris" bench $long >out 2>err
    ! grep -q "$line" err
    verdict "a file does not" $?
}

options() {
    succeeds "--help" "$iris" bench --help
    grep -q -e --sizes out
    verdict "--help names options" $?
    succeeds "--list" "$iris" bench --list
    refuses bogus --bogus
    refuses nonsense --ops put,nonsense
    refuses 3:4 --sizes 3:4
    refuses 8:4 --sizes 8:4
    refuses 1Q --sizes 1Q
    refuses zero --ranks zero
    refuses 0 --ranks 0
    refuses i128 --type i128
    refuses MxNxK --shapes 4x4
    refuses MxNxK --shapes 4x0x4
    refuses MxNxK --shapes 4x4x4,
    refuses MxNxK --shapes 4x4x4x4
    refuses 'at most 64' --shapes "$(printf '4x4x4,%.0s' {1..64})4x4x4"
    refuses star --pairs star
    refuses xml --format xml
    refuses -1 --seconds -1
    refuses word word
    "$iris" bench --ops launch --output /nonexistent/file >out 2>err
    [ $? = 1 ] && grep -q /nonexistent/file err
    verdict "an output that cannot be written is told" $?
}

# Small, even and uneven products of every type, and what finds a wrong one.
fused() {
    local products="-o fused --shapes 1x1x1,3x5x2,8x16x143,9x31x17 --iterations 3"
    # shellcheck disable=SC2086
    succeeds "fused operations of 4 ranks" "$iris" bench -n 4 $products --dtypes all \
        --format csv
    awk -F, '$1 == "fused" && $18 ~ /^(f16|bf16|f32)$/ && $21 > 0 && $23 > 0 &&
            $26 > 0 && $27 > 0 && $28 > 0 { n[$2]++ }
        END { for (op in n) { ops++; bad += n[op] != 12 } exit bad || ops != 4 }' out
    verdict "12 points of each of the 4, with their parts" $?
    # shellcheck disable=SC2086
    succeeds "fused operations by the plain loop" env IRIS_BLAS=none \
        IRIS_SPAWN=processes "$iris" bench -n 3 $products
    grep -q 'product us collective us  unfused us    fused us' out
    verdict "a table of their own" $?
    if [ -n "$MPIRUN" ]; then
        # shellcheck disable=SC2086
        succeeds "MPI beside them" env IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu \
            ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" "$MPIRUN" \
            --oversubscribe -n 3 "$iris" bench $products --peer --format json
        [ "$(grep -c '"peer": ".*MPI' out)" = 16 ] && grep -q '"peer_us": [0-9]' out
        verdict "with a time in every row" $?
    fi
    # shellcheck disable=SC2086
    succeeds "a report of them" "$iris" bench $products --format json --output fused.json
    fused_plot
    fused_wrong
}

# A picture where there is Matplotlib; a report without such points is none.
fused_plot() {
    local python plot=$here/../scripts/bench-plot
    for python in python3 /usr/bin/python3 ''; do
        [ -z "$python" ] || ! $python -c 'import matplotlib' 2>/dev/null || break
    done
    if [ -z "$python" ]; then
        echo "left out: a picture, no Matplotlib"
        return
    fi
    succeeds "a picture" "$python" "$plot" fused.json fused.png
    [ "$(head -c 4 fused.png | tail -c 3)" = PNG ] && [ "$(cat out)" = fused.png ]
    verdict "that is one" $?
    sed 's/"group": "fused"/"group": "launch"/' fused.json >launch.json
    "$python" "$plot" launch.json none.png >out 2>err
    [ $? = 1 ] && grep -q 'collectives or fused' err && [ ! -e none.png ]
    verdict "and none of other operations" $?
}

# A library that gets the first element of a product wrong.
fused_wrong() {
    if [ ! -e "${IRIS_MODULE_DIR-}/iris_cblas.so" ]; then
        echo "left out: a wrong product, built without CBLAS"
        return
    fi
    cat >wrong.c <<'END'
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k,
                 float alpha, const float *a, int a_row, const float *b,
                 int b_row, float beta, float *c, int c_row);
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k,
                 float alpha, const float *a, int a_row, const float *b,
                 int b_row, float beta, float *c, int c_row)
{
    (void)order, (void)trans_a, (void)alpha, (void)beta;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            c[i * c_row + j] = i == 0 && j == 0; /* the fault */
            for (int l = 0; l < k; l++) {
                c[i * c_row + j] += a[i * a_row + l] *
                    (trans_b == 112 ? b[j * b_row + l] : b[l * b_row + j]);
            }
        }
    }
}
END
    $CC -shared -fPIC -o wrong.so wrong.c || verdict "the wrong CBLAS compiles" 1
    ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" LD_PRELOAD=./wrong.so \
        "$iris" bench -o fused --shapes 8x4x3 --iterations 1 >out 2>err
    [ $? = 1 ] && [ "$(grep -c 'VALUES WRONG' out)" = 4 ] && grep -q 'were wrong' err
    verdict "a wrong product is seen by every operation" $?
}

succeeds_targets() {
    succeeds "--targets" "$iris" bench --targets --sizes 1M --iterations 2 \
        --live 200 --init-heap 16M --init-ranks 2 --format json
    grep -q '"held"' out
    verdict "--targets says what held" $?
    parses "--targets parses" out
}

[ -x "$iris" ] || { echo "no $iris" && exit 1; }
formats
ways_of_running
progress
options
fused
succeeds_targets
[ $failed = 0 ]
