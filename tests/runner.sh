#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# What tests/run makes of tests that pass, fail, die, exit, hang and leave themselves
# out; and that a file of tests, or a script, that nothing runs is found.
set -u
. "$(dirname "$0")/support/script.sh"
unset IRIS_RANK IRIS_NUM_RANKS
[ -e tests/libharness.la ] && [ -x tests/run ] || {
    echo "skipped: the tests are not built"
    exit 77
}

cat >"$tmp/test_planted.c" <<'EOF'
#include "support/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int turns;

static TEST(it_passes)
{
    assert_int_equal(turns++, 0);
}

static TEST(it_fails)
{
    printf("why it fails\n");
    assert_int_equal(1, 2);
}

static TEST(it_dies)
{
    signal(SIGABRT, SIG_DFL);
    abort();
}

static TEST(it_exits)
{
    exit(0);
}

static TEST(it_hangs)
{
    fork();
    for (;;) {
        pause();
    }
}

static TEST(it_is_left_out)
{
    printf("left out: there is no moon\n");
    skip();
}

static TEST(it_passes_too)
{
    assert_int_equal(turns++, 0);
}

TEST_GROUP_WITH(NULL, NULL, unit, planted);
EOF
# shellcheck disable=SC2086 # the compiler may be a command with options
./libtool --silent --mode=link --tag=CC ${CC-cc} ${CFLAGS-} -std=gnu11 -I. -Iinclude \
    -I"$root/include" -I"$root/src" -I"$root/tests" -no-install -o "$tmp/run" \
    "$tmp/test_planted.c" tests/libharness.la libirisi.la -lcmocka -lm -lpthread || exit 1

# Each line of the standard input is in the output, which ends with this status.
expect() { # STATUS ARGUMENT...
    local status=$1 line ret
    shift
    IRIS_TEST_TIMEOUT=1 timeout -k 5 60 "$tmp/run" "$@" >"$tmp/out" 2>&1
    ret=$?
    [ $ret = "$status" ] || fail "run $*: exit status $ret, not $status"
    while IFS= read -r line; do
        grep -qxF -- "$line" "$tmp/out" || fail "run $*: no line \"$line\""
    done
    [ $failed = 0 ] || cat "$tmp/out"
}
expect 1 <<'EOF'
ok 1 - test_planted: it passes
not ok 2 - test_planted: it fails
# why it fails
not ok 3 - test_planted: it dies
# test_planted: it exits: its process exited before its end
not ok 4 - test_planted: it exits
# test_planted: it hangs: took more than 1 s
not ok 5 - test_planted: it hangs
ok 6 - test_planted: it is left out # SKIP left out: there is no moon
ok 7 - test_planted: it passes too
1..7
EOF
! pgrep -f "$tmp/run" || fail "a process of the test that hangs is left"
expect 0 -k "it passes" test_planted <<'EOF'
ok 2 - test_planted: it passes too
1..2
EOF
# In one process the second test sees what the first one did.
expect 1 --together -k "it passes" <<'EOF'
[       OK ] it_passes
[  FAILED  ] it_passes_too
EOF
expect 77 -k moon <<<"1..0"
expect 77 -k "left_out" <<<"1..1"
expect 0 --list <<'EOF'
test_planted unit, planted
    it is left out
EOF
expect 2 test_other <<<"run: this program has no file test_other"
# As a rank of a launcher's: one process, which says what CMocka says.
IRIS_RANK=0 IRIS_NUM_RANKS=1 expect 77 -k "left out" <<<"left out: there is no moon"
IRIS_RANK=0 IRIS_NUM_RANKS=1 expect 1 -k "it fails" <<<"why it fails"

# A tree with a file that no program contains.
tests/run --list >"$tmp/out" || fail "tests/run --list: $(tail -n 3 "$tmp/out")"
mkdir -p "$tmp/tree/heap"
cp "$tmp/test_planted.c" "$tmp/tree/heap"
sed "s|^source=.*|source='$tmp/tree'|; s|^build=.*|build=$PWD/tests|" tests/run >"$tmp/planted"
! sh "$tmp/planted" --list >"$tmp/out" 2>&1 && grep -q "no program has tests/heap/test_planted.c" "$tmp/out" ||
    fail "a file that no program contains is not found"

# make finds a test's log by its name without the ending.
for script in $(cd "$root" && grep -l '^# inputs: ' tests/*.sh tests/*/*.sh); do
    [ ! -e "$root/${script%.sh}.c" ] || fail "$script and ${script%.sh}.c have one log"
done
for script in "$root"/tests/*.sh; do
    grep -q '^# inputs: ' "$script" || fail "$script has no line '# inputs:', so nothing runs it"
done
[ $failed = 0 ]
