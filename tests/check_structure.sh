#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The rules of the house: who may include whom, where compilers are asked and
# builtins used, and how large a thing may grow. Prints file:line: what.
# Lists of files are meant to split into words.
# shellcheck disable=SC2046,SC2086
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.." || exit 1
violations=$(mktemp)
trap 'rm -f "$violations"' EXIT

sources() { # FOLDER...: the C files below
    find "$@" \( -name '*.[ch]' -o -name '*.hip' \) -type f 2>/dev/null | sort
}

# Prints, for the lines on stdin (file:line:text), what is wrong with them.
because() {
    sed "s/^\([^:]*:[0-9]*\):.*/\1: $1/"
}

# Includes of the given files, as file:line:name.
includes() {
    [ $# = 0 ] || grep -HnE '^[[:space:]]*#[[:space:]]*include' "$@" |
        sed -E 's/^([^:]*:[0-9]*):[^<"]*([<"][^>"]*[>"]).*/\1:\2/'
}

# Lines of the given files that match a pattern outside comments.
code_lines() { # PATTERN FILE...
    local pattern=$1
    shift
    [ $# = 0 ] || awk -v pattern="$pattern" '
        FNR == 1 { comment = 0 }
        {
            code = $0
            if (comment) {
                if (!sub(/^.*\*\//, "", code))
                    next
                comment = 0
            }
            gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", code)
            gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
            if (sub(/\/\*.*/, "", code))
                comment = 1
            sub(/\/\/.*/, "", code)
            if (code ~ pattern)
                print FILENAME ":" FNR ":" $0
        }' "$@"
}

check_includes() {
    local core sim hip
    core=$(sources src include | grep -v '^src/backend_')
    sim=$(sources src/backend_sim)
    hip=$(sources src/backend_hip)
    includes $core $sim | grep -E '[<"](hip/|hip_|cuda|rocm)' |
        because "only backend_hip includes HIP or CUDA headers"
    includes $sim | grep -E 'backend_hip|"hip_' |
        because "a backend includes the other one"
    includes $hip | grep -E 'backend_sim|"sim_' |
        because "a backend includes the other one"
    includes $(sources device) |
        grep -vE ':<(stdint\.h|stddef\.h|iris\/types\.h|iris\/device\/[a-z_/]+\.h)>$|include IRIS_TARGET_HEADER$' |
        because "device\\/ includes only itself, stdint, stddef, iris\\/types.h"
    includes include/iris/types.h | grep -vE ':<std(int|def)\.h>$' |
        because "iris\\/types.h includes only stdint and stddef"
}

check_compilers() {
    local files
    files=$(sources device src include tools examples)
    code_lines '__(HIPCC|CUDACC|clang|GNUC|NVCC|INTEL_COMPILER|SANITIZE_[A-Z]+|has_[a-z_]+|HIP_(PLATFORM|DEVICE_COMPILE)[A-Z_]*|CUDA_ARCH__)([^A-Za-z]|$)' \
        $(grep -vE '^device/(compat|target_[a-z]+)\.h$' <<<"$files") |
        because "asks which compiler this is; only compat.h and target_*.h may"
    code_lines '(^|[^A-Za-z0-9_])(__builtin_|__atomic_|__sync_|__hip_|__threadfence|__syncthreads|_mm_|__(asm|asm__)|asm([^A-Za-z0-9_]|$))' \
        $(grep -v '^device/atomic\.h$' <<<"$files") |
        grep -v '^device/compat\.h:[0-9]*:.*__builtin_expect(' |
        because "a builtin, an intrinsic or asm; only device\\/atomic.h has them"
}

check_sizes() {
    local lines file
    for file in $(sources src include device tools examples tests bench); do
        lines=$(wc -l <"$file")
        [ "$lines" -le 500 ] ||
            echo "$file:500: file of $lines lines, more than 500"
    done
    lines=$(cat configure.ac Makefile.am m4/iris_*.m4 | wc -l)
    [ "$lines" -le 350 ] ||
        echo "configure.ac:1: with Makefile.am and m4/ $lines lines, more than 350"
    awk -v count_params=1 -f "$here/check_structure.awk" $(sources src)
    awk -v count_params=0 -f "$here/check_structure.awk" \
        $(sources include device tools examples tests bench)
}

check_twins() {
    sources src/backend_sim | grep -v '/sim\(_[a-z]*\)\?\.[ch]$' |
        sed 's/$/:1: not called sim_<noun>/'
    [ -d src/backend_hip ] || return
    sources src/backend_hip | grep -v '/hip\(_[a-z]*\)\?\.\(c\|h\|hip\)$' |
        sed 's/$/:1: not called hip_<noun>/'
    # What the vtable is about; the rest is a backend's own affair.
    local noun
    for noun in heap init launch stream; do
        [ -e src/backend_sim/sim_$noun.c ] && [ -e src/backend_hip/hip_$noun.c ] ||
            echo "src/backend.h:1: not both backends have a file for $noun"
    done
}

check_words() {
    local word='TO''DO|FIX''ME|X''XX'
    grep -HnEw "$word" $(sources src include device tools examples tests bench) \
        configure.ac Makefile.am m4/iris_*.m4 scripts/* tests/*.sh |
        because "a note of work left undone"
}

{
    check_includes
    check_compilers
    check_sizes
    check_twins
    check_words
} >"$violations"
cat "$violations"
if [ -s "$violations" ]; then
    echo "$(wc -l <"$violations") violations"
    exit 1
fi
echo "structure: nothing to complain about"
