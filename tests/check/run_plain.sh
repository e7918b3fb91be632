#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# iriscc --check: IRIS_CHECK=race finds races by ordinary accesses at their lines
# (tests/check/plain.c says which), and is silent about correct programs.
set -u
srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd)
case "${CFLAGS-} ${CC-}" in
*sanitize*) echo "--check does not go with a sanitizer" && exit 77 ;;
esac
num_bugs=10
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$PWD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu
failed=0

compile() { # COMPILER LEVEL
    IRISCC_CC=$1 ./iriscc --check --cpu-only -std=gnu11 "$2" -Iinclude \
        -I"$srcdir/include" -L.libs -L. -o "$dir/plain" \
        "$srcdir/tests/check/plain.c"
}

# Exits with 3 for a race, and names each line of the bug.
finds() { # BUG RANKS
    local number numbers
    IRIS_CHECK=race "$dir/plain" "$1" "$2" 2>"$dir/log"
    [ $? = 3 ] || return 1
    numbers=$(grep -n "bug $1\>" "$srcdir/tests/check/plain.c" | cut -d: -f1)
    for number in $numbers; do
        grep -q "plain.c:$number\>" "$dir/log" || return 1
    done
}

complain() { # WHAT
    echo "FAILED: $1"
    cat "$dir/log"
    failed=1
}

check_all() { # COMPILER SPAWN RANKS
    local bug
    export IRIS_SPAWN=$2
    for ((bug = 1; bug <= num_bugs; bug++)); do
        finds "$bug" "$3" || complain "bug $bug, $*"
        IRIS_CHECK=race "$dir/plain" "-$bug" "$3" 2>"$dir/log" ||
            complain "twin $bug, $*"
    done
}

cc=${CC:-cc}
compile "$cc" -O1 || exit 1
check_all "$cc" threads 2
! nm "$dir/plain" | grep -q __tsan_create_thread || complain "it has libtsan"
# The files: what a code host reads has both lines.
IRIS_REPORT=$dir/ci finds 1 2 || complain "with files"
line=$(grep -n -m 1 "bug 1\>" "$srcdir/tests/check/plain.c" | cut -d: -f1)
tr -d ' \n' <"$dir/ci_races.sarif" >"$dir/log"
for text in "\"uri\":\"plain.c\"},\"region\":{\"startLine\":$line}" \
    '"version":"2.1.0"' '"ruleId":"data-race","level":"error"'; do
    grep -qF "$text" "$dir/log" || complain "SARIF without $text"
done
# A host that waits for another stream than that of the kernel is told so.
finds 8 2 && grep -q "synchronize the stream of plain.c:[0-9]*, not another one, ahead of plain.c" \
    "$dir/log" || complain "no advice"
finds 9 2 && grep -q "memory of rank 0 that is on no heap" "$dir/log" &&
    grep -q "missing: stream order" "$dir/log" || complain "no memory off the heap"
# The weak mode shows an old value of an ordinary load, of the bug only.
old=0
for ((seed = 1; seed <= 20; seed++)); do
    IRIS_CHECK=weak IRIS_SEED=$seed "$dir/plain" 2 2 2>"$dir/log" || old=$((old + 1))
    IRIS_CHECK=weak IRIS_SEED=$seed "$dir/plain" -2 2 2>"$dir/log" ||
        complain "twin 2 in the weak mode, seed $seed"
done
[ $old != 0 ] || complain "no old value in the weak mode"
# Nobody looks: nothing is found, and nothing fails.
"$dir/plain" 1 2>"$dir/log" || complain "without IRIS_CHECK"
if [ "${IRIS_TEST_LONG:-0}" != 0 ]; then
    check_all "$cc" processes 3
    check_all "$cc" threads 4
    if command -v clang >/dev/null && compile clang -O0; then # -O1 makes lines one
        check_all clang threads 3
    fi
else
    IRIS_SPAWN=processes finds 1 2 || complain "processes"
fi
exit $failed
