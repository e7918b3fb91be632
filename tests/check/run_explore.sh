#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# tests/check/explorer on the litmus tests (tests/check/explore.c): it finds each
# allowed outcome and no forbidden one, its outputs include those of random seeds,
# and its counts are those of docs/checking.md. With a fault in the tool it does
# not.
set -u
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/checked.sh"
export TMPDIR=$tmp
tool=$build/tests/check/explorer
seeds=100
[ "${IRIS_TEST_LONG:-0}" = 0 ] || seeds=1000

compile explore replay
cd "$tmp" || exit 1

explore() { # ARGUMENT...
    "$tool" "$@" >out 2>&1 </dev/null
}

# Whether it finds the outcome if that is allowed; and then its schedule shows it.
is_right() { # NAME VERDICT
    explore -l 5000 -- ./explore "$1"
    case $?,$2 in
    0,forbidden | 0,unseen) grep -q "no failure in all" out ;;
    1,allowed)
        "$build/iris" replay explored -- ./explore "$1" >again &&
            grep -q "the same run" again
        ;;
    *) false ;;
    esac
}

# Whether it finds all that seeds find, in as many executions each time.
is_complete() { # NAME
    explore --all -- ./explore "$1"
    sed -n 's/^[0-9]* executions: //p' out | sort -u >found
    ./explore "$1" $seeds 2>/dev/null | sort -u | comm -23 - found >missing
    [ -s found ] && [ ! -s missing ]
}

# The verdicts. CoRR2 takes the longest.
./explore >tests
while IFS='|' read -r name verdict; do
    [ "$name" != CoRR2 ] || [ $seeds = 1000 ] || continue
    is_right "$name" "$verdict" || fail "$name is not $verdict"
    [ $seeds = 100 ] || is_complete "$name" || fail "$name is not complete"
done <tests
for name in poll lock ring; do
    is_right $name forbidden || fail "$name"
    is_right $name+relaxed allowed || fail "$name+relaxed"
done
for name in IRIW MP+store MP+update MP+wg+workgroups SB+updates CoWW lock+relaxed; do
    is_complete "$name" || fail "$name is not complete"
done

# How many there are. Of the six of MP three read the flag before it is set: then
# the load is before the store, or after it and old or new. The flag may be read
# when it is set and be old, and the load old or new; or both are new.
for name in MP ISA2 WRC IRIW; do
    explore --all -- ./explore $name
    count=$(grep -oE '^[0-9]+ executions' out | awk '{ n += $1 } END { print n }')
    grep -qE "\`$name\` has $count executions" "$root/docs/checking.md" ||
        fail "docs/checking.md has no: \`$name\` has $count executions"
done
explore -- ./explore MP
grep -q "all 6 executions" out || fail "MP has other executions"
# Each wait of the ring waits for one store, so all is in one order.
explore -l 100 -- ./explore ring
grep -q "all 1 executions" out || fail "the ring has other executions"
# Hosts that wait for kernels in a call of all ranks are in time for it. A busy
# machine may be late some of the times.
late() {
    IRIS_CHECK=weak IRIS_SEED=$1 IRIS_SCHEDULE=schedule ./explore ring >out 2>&1
    grep -q "^early" schedule
}
late 1 && late 2 && late 3 && late 4 && fail "the hosts are late"

# What it found can be made short and shown.
explore -- ./explore MP+relaxed
"$build/iris" replay -s -p -o short explored -- ./explore MP+relaxed >out 2>&1
grep -q "short: 1 of" out || fail "not short"
grep -q "== 0 .*not visible yet" out || fail "nothing shown"

# Too many, and programs that are not the same each time.
explore -l 5 -- ./replay right 3
[ $? = 2 ] || fail "5 executions are all"
grep -q "there are more executions" out || fail "nothing about more"
echo 0 >turn
# shellcheck disable=SC2016 # the inner shell's
explore -- sh -c 'read -r n <turn; echo $((n + 1)) >turn
    [ $((n % 2)) = 0 ] && exec ./explore MP; exec ./explore IRIW'
[ $? = 2 ] || fail "a program that changes"
grep -q "does not do the same" out || fail "nothing about the change"
explore -- ./no-such-program
[ $? = 2 ] || fail "no such program"
explore -l 0 -- ./explore MP
[ $? = 2 ] || fail "a limit of 0"
explore
[ $? = 2 ] || fail "no program"

# Faults in the tool, with programs of updates, whose order old values cannot stand
# for: it takes steps for independent, sleeps for too long, leaves
# old values out, or adds no other order of a race.
build() { # PATTERN REPLACEMENT: the tool with another line
    sed "s/$1/$2/" "$root/tests/check/explorer.c" >explorer.c
    cmp -s explorer.c "$root/tests/check/explorer.c" && fail "no line is like $1"
    # shellcheck disable=SC2086 # lists of words
    (cd "$build" && ./libtool --silent --mode=link --tag=CC ${CC:-cc} ${CFLAGS-} \
        -std=gnu11 -D_GNU_SOURCE -I. -Iinclude -I"$root/include" -I"$root/src" \
        -I"$root" -no-install -o "$tmp/mutant" "$tmp/explorer.c" \
        tools/command.o tools/replay.o tools/replay_table.o \
        libirisi.la) || fail "the explorer does not compile: $1"
}
mutant() { # PATTERN REPLACEMENT NAME: outputs of NAME are missing
    build "$1" "$2"
    tool=$tmp/mutant
    is_complete "$3" && fail "fault not noticed: $1"
    tool=$build/tests/check/explorer
}
mutant "(x->writes || y->writes) \&\&" "false \&\&" counter
mutant "if (!depend(&before->sleep" "if (!0 || depend(\&before->sleep" MP+update
mutant "node->old\[last\] + 1 < " "false \&\& 0 < " IRIW
mutant "node->todo |= lanes & -lanes" "(void)lanes" counter

# Without reduction, all orders of all steps: the outputs are the same ones.
build "a->lane == b->lane || a->is_own" "true || a->lane == b->lane"
for name in MP+relaxed MP+wg+workgroups counter+agent lock+relaxed; do
    tool=$tmp/mutant
    explore --all -- ./explore $name
    sed -n 's/^[0-9]* executions: //p' out | sort >all
    [ -s all ] || fail "$name has no outputs"
    tool=$build/tests/check/explorer
    explore --all -- ./explore $name
    sed -n 's/^[0-9]* executions: //p' out | sort | cmp -s - all ||
        fail "$name has other outputs without reduction"
done
exit $failed
