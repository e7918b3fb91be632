#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# iriscc --check: IRIS_CHECK=race finds races by ordinary accesses at their lines
# (tests/check/plain.c says which), and is silent about correct programs.
set -u
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/checked.sh"
num_bugs=10

compile() { # COMPILER LEVEL
    IRISCC_CC=$1 ./iriscc --check --cpu-only -std=gnu11 "$2" -Iinclude \
        -I"$root/include" -L.libs -L. -o "$tmp/plain" \
        "$root/tests/check/plain.c"
}

# Exits with 3 for a race, and names each line of the bug.
finds() { # BUG RANKS
    local number numbers
    IRIS_CHECK=race "$tmp/plain" "$1" "$2" 2>"$tmp/out"
    [ $? = 3 ] || return 1
    numbers=$(grep -n "bug $1\>" "$root/tests/check/plain.c" | cut -d: -f1)
    for number in $numbers; do
        grep -q "plain.c:$number\>" "$tmp/out" || return 1
    done
}

check_all() { # COMPILER SPAWN RANKS
    local bug
    export IRIS_SPAWN=$2
    for ((bug = 1; bug <= num_bugs; bug++)); do
        finds "$bug" "$3" || fail "bug $bug, $*"
        IRIS_CHECK=race "$tmp/plain" "-$bug" "$3" 2>"$tmp/out" ||
            fail "twin $bug, $*"
    done
}

cc=${CC:-cc}
compile "$cc" -O1 || exit 1
check_all "$cc" threads 2
! nm "$tmp/plain" | grep -q __tsan_create_thread || fail "it has libtsan"
# The files: what a code host reads has both lines.
IRIS_REPORT=$tmp/ci finds 1 2 || fail "with files"
line=$(grep -n -m 1 "bug 1\>" "$root/tests/check/plain.c" | cut -d: -f1)
tr -d ' \n' <"$tmp/ci_races.sarif" >"$tmp/out"
for text in "\"uri\":\"plain.c\"},\"region\":{\"startLine\":$line}" \
    '"version":"2.1.0"' '"ruleId":"data-race","level":"error"'; do
    grep -qF "$text" "$tmp/out" || fail "SARIF without $text"
done
# A host that waits for another stream than that of the kernel is told so.
finds 8 2 && grep -q "synchronize the stream of plain.c:[0-9]*, not another one, ahead of plain.c" \
    "$tmp/out" || fail "no advice"
finds 9 2 && grep -q "memory of rank 0 that is on no heap" "$tmp/out" &&
    grep -q "missing: stream order" "$tmp/out" || fail "no memory off the heap"
# The weak mode shows an old value of an ordinary load, of the bug only.
old=0
for ((seed = 1; seed <= 20; seed++)); do
    IRIS_CHECK=weak IRIS_SEED=$seed "$tmp/plain" 2 2 2>"$tmp/out" || old=$((old + 1))
    IRIS_CHECK=weak IRIS_SEED=$seed "$tmp/plain" -2 2 2>"$tmp/out" ||
        fail "twin 2 in the weak mode, seed $seed"
done
[ $old != 0 ] || fail "no old value in the weak mode"
# Nobody looks: nothing is found, and nothing fails.
"$tmp/plain" 1 2>"$tmp/out" || fail "without IRIS_CHECK"
if [ "${IRIS_TEST_LONG:-0}" != 0 ]; then
    check_all "$cc" processes 3
    check_all "$cc" threads 4
    if command -v clang >/dev/null && compile clang -O0; then # -O1 makes lines one
        check_all clang threads 3
    fi
else
    IRIS_SPAWN=processes finds 1 2 || fail "processes"
fi
exit $failed
