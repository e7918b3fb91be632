#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# Tests the checker of modules. It plants four faults in a small tree: a cycle
# of calls, a function that its file's header lacks, a function in a header of
# types, and a name that another file has. Then it plants a cycle in each folder
# that src has. The checker reports these and no others.
set -u
export LC_ALL=C
. "$(dirname "$0")/support/script.sh"
copy=$tmp

# A file that defines iris_i_NAME, which calls the others named, and its header.
module() { # FOLDER NAME CALLED...
    local base=src/$1/$2 name=$2 called
    echo "int iris_i_$name(void);" >"$base.h"
    shift 2
    {
        for called; do
            echo "int iris_i_$called(void);"
        done
        echo "int iris_i_$name(void);"
        echo "int iris_i_$name(void) { return 0"
        for called; do
            echo "+ iris_i_$called()"
        done
        echo "; }"
    } >"$base.c"
}

compile() {
    local file
    for file in src/*/*.c; do
        mkdir -p "$(dirname "$file")/.libs"
        # CC and CFLAGS may be several words.
        # shellcheck disable=SC2086
        ${CC:-cc} -c "$file" -o "$(dirname "$file")/.libs/lib_la-$(basename "$file" .c).o" ||
            exit 1
    done
}

# expect PATTERN...: what the check reports.
expect() {
    local line pattern
    srcdir=. bash "$here/check_modules.sh" >found
    [ $? = $((1 - ($# == 0))) ] || fail "exit status for: $*"
    for pattern; do
        grep -q "$pattern" found || fail "not reported: $pattern"
    done
    grep ':1: ' found | while read -r line; do
        for pattern; do
            ! grep -q "$pattern" <<<"$line" || continue 2
        done
        echo "FAILED: reported, but not planted: $line"
    done >unexpected
    cat unexpected
    [ ! -s unexpected ] || failed=1
}

cd "$copy" || exit 1
mkdir -p src/backend_sim src/backend_hip include device tools bench
module backend_sim sim_low
module backend_sim sim_middle sim_low
module backend_sim sim_high sim_middle sim_low
module backend_hip hip_low
module backend_hip hip_high hip_low
compile
expect
[ "$(srcdir=. bash "$here/check_modules.sh" --arrows hip_low.c)" = \
    "src/backend_hip/hip_high.c calls src/backend_hip/hip_low.c: iris_i_hip_low" ] ||
    fail "the arrows to hip_low.c"

module backend_sim sim_low sim_high
compile
expect "sim_[a-z]*.c:1: a cycle of calls: .*sim_low.c.* by iris_i_"

module backend_sim sim_low
: >src/backend_sim/sim_middle.h
compile
expect "sim_middle.c:1: no header of src/backend_sim for its files has iris_i_sim_middle"

module backend_sim sim_middle sim_low
mv src/backend_sim/sim_low.h src/backend_sim/internal.h
echo '#include "backend_sim/internal.h"' >src/backend_hip/hip_stray.h
compile
expect "hip_stray.h:1: includes internal.h of another folder"

rm -r src/backend_sim/.libs src/backend_hip/hip_stray.h
srcdir=. bash "$here/check_modules.sh" >found && fail "no objects, and exit status 0"

# A cycle in each folder of the tree, and in one that is no layer.
rm -rf src
for folder in $(cd "$here/../src" && find . -name '*.c' -printf '%h\n' | sort -u) newest; do
    folder=${folder#./}
    mkdir -p "src/$folder"
    module "$folder" "${folder}_one" "${folder}_two"
    module "$folder" "${folder}_two" "${folder}_one"
    cycles+=("src/$folder/${folder}_[a-z]*.c:1: a cycle of calls")
done
compile
expect "${cycles[@]}"
[ ${#cycles[@]} -gt 2 ] || fail "found no folders"
[ $failed = 0 ] && echo "passed: five planted faults found, and a cycle in ${#cycles[@]} folders"
exit $failed
