#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# iris replay: a failure comes again under its schedule and under a short one, the
# table shows it, and what does not fail, or is another program's,
# is told (tests/check/replay.c).
set -u
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/checked.sh"
export TMPDIR=$tmp

compile replay command
mv "$tmp/replay" "$tmp/talk"
cp "$tmp/talk" "$tmp/other"
cd "$tmp" || exit 1

# The tool's exit status and a line of what it says.
expect() { # STATUS TEXT ARGUMENT...
    local status=$1 text=$2
    shift 2
    "$build/iris" replay "$@" >out 2>&1
    [ $? = "$status" ] || fail "not status $status: iris replay $*"
    grep -qe "$text" out || fail "nothing like $text: iris replay $*"
}

has() { # FILE TEXT...
    local file=$1 text
    shift
    for text in "$@"; do
        grep -qe "$text" "$file" || fail "$file has nothing like $text"
    done
}

line_of() { # WORD: the line of replay.c with this comment
    grep -n "/\* $1 \*/" "$root/tests/check/replay.c" | cut -d: -f1
}

line_of_command() { # WORD: the same of command.c
    grep -n "/\* $1 \*/" "$root/tests/check/command.c" | cut -d: -f1
}

record() { # FILE CHECK SEED BUG: the status is that of the program
    IRIS_CHECK=$2 IRIS_SEED=$3 IRIS_SCHEDULE=$1 ./talk "$4" 3 >out 2>&1
}

seed=1
while record weak weak $seed bug && [ $seed -lt 20 ]; do
    seed=$((seed + 1))
done
[ $seed -lt 20 ] || fail "no seed shows the bug"
record right weak $seed right || fail "the correct program fails"
record race race 1 bug && fail "no race"

# Again.
expect 0 "it fails again: exit status 3" weak -- ./talk bug 3
has out "the same run: 52 operations"
expect 0 "it fails again: output with" -m "an old value" weak -- ./talk bug 3
expect 1 "no failure" -m "a new value" weak -- ./talk bug 3
expect 0 "data race" race -- ./talk bug 3
has out "replay.c:$(line_of data): store by rank 0"
expect 1 "no failure" right -- ./talk right 3

# Short: the one choice is that the load takes an old value.
expect 0 "weak.short: 1 of [0-9]* choices" --shrink --print weak -- ./talk bug 3
has out "  1   inbox@1 := 7  .*replay.c:$(line_of data), .*never sees it" \
    "  2   flag@1 := 1 .*replay.c:$(line_of flag), .*relaxed" \
    "  3  .* flag@1 == 1 .*replay.c:$(line_of wait), .*from line 2" \
    "  4  .* inbox@1 == 0 .*replay.c:$(line_of old), .*line 1 is not visible"
grep -q "^ *5 " out && fail "more than four lines"
[ "$(grep -cE '^(turn|read) ' weak.short)" = 1 ] || fail "weak.short is long"
has weak.short "^read 1 0 0 .* old 1"
expect 0 "the same run" weak.short -- ./talk bug 3
expect 0 "race.short: 0 of" -s -p race -- ./talk bug 3
has out "inbox@1 := 7 .*RACE" "inbox@1 == 7 .*RACE"

# A race after many operations: fifteen lines have both accesses, and what is missing.
IRIS_CHECK=race IRIS_SEED=3 IRIS_SCHEDULE=rounds IRIS_NUM_RANKS=2 ./command bug >out 2>&1
expect 0 "data race" --print rounds -- ./command bug
[ "$(wc -l <out)" -le 15 ] || fail "more than fifteen lines"
[ "$(grep -c RACE out)" = 2 ] || fail "not both accesses: $(cat out)"
has out ":= 3 .*command.c:$(line_of_command put), .*RACE" \
    "== 3 .*command.c:$(line_of_command use), .*RACE" "^missing: credit; rank 1 may still read"

# A shrink whose last run does not fail, and one whose program never fails again.
for letters in 1 2 3 4 5; do
    printf "%${letters}s" "" >letters
    expect 1 "." -s -o fickle.short weak -- ./talk fickle 3 letters
    [ ! -e fickle.short ] || fail "a schedule that does not fail is written"
done
printf "%40s" "" >letters
expect 0 "fickle.short: 1 of" -s -o fickle.short weak -- ./talk fickle 3 letters
: >letters
expect 1 "no failure" weak -- ./talk fickle 3 letters

# Schedules that are not this program's, or no schedules.
expect 2 "was recorded by talk with 3 ranks" weak -- ./other bug 3
expect 2 "this is talk with 2 ranks" weak -- ./talk bug 2
expect 1 "another run: operation" weak -- ./talk right 3
expect 2 "nowhere: No such file" nowhere -- ./talk bug 3
expect 2 "is no schedule" "$root/README.md" -- ./talk bug 3
head -c -20 weak >torn
expect 2 "torn is damaged or truncated in line" torn -- ./talk bug 3
sed '/^did/s/\t/ /3' weak >torn
expect 2 "torn is damaged or truncated in line" torn -- ./talk bug 3
sed '$d' weak >torn
expect 0 "has no end" torn -- ./talk bug 3
expect 2 "did not run under the schedule" weak -- true
expect 2 "no-such-program: No such file" weak -- ./no-such-program
expect 2 "cannot write /nowhere/out" -s -o /nowhere/out weak -- ./talk bug 3
expect 2 "pass a schedule\|pass -- before" weak ./talk bug 3
expect 2 "pass a schedule\|pass -- before" weak
expect 2 '--timeout=0' -t 0 weak -- ./talk bug 3
expect 0 "Exit status" --help
[ -z "$(find . -name 'iris-replay.*')" ] || fail "files are left"
exit $failed
