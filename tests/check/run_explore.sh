#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# tests/check/explorer on the litmus tests (tests/check/explore.c): it finds each
# allowed outcome and no forbidden one, its outputs include those of random seeds,
# and its counts are those of docs/checking.md. With a fault in the tool it does
# not.
set -u
srcdir=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
case "${CFLAGS-} ${CC-}" in
*sanitize*) echo "programs are not linked with the sanitizer" && exit 77 ;;
esac
build=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_SPAWN=threads TMPDIR=$dir
tool=$build/tests/check/explorer
failed=0
seeds=100
[ "${IRIS_TEST_LONG:-0}" = 0 ] || seeds=1000

for name in explore replay; do
    # shellcheck disable=SC2086 # the compiler may be a command with options
    ${CC:-cc} -std=gnu11 -g -O1 -Iinclude -I"$srcdir/include" -L.libs \
        -o "$dir/$name" "$srcdir/tests/check/$name.c" -liris || exit 1
done
cd "$dir" || exit 1

complain() {
    echo "FAILED: $1"
    cat out
    failed=1
}

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
    is_right "$name" "$verdict" || complain "$name is not $verdict"
    [ $seeds = 100 ] || is_complete "$name" || complain "$name is not complete"
done <tests
for name in poll lock ring; do
    is_right $name forbidden || complain "$name"
    is_right $name+relaxed allowed || complain "$name+relaxed"
done
for name in IRIW MP+store MP+update MP+wg+workgroups SB+updates CoWW lock+relaxed; do
    is_complete "$name" || complain "$name is not complete"
done

# How many there are. Of the six of MP three read the flag before it is set: then
# the load is before the store, or after it and old or new. The flag may be read
# when it is set and be old, and the load old or new; or both are new.
for name in MP ISA2 WRC IRIW; do
    explore --all -- ./explore $name
    count=$(grep -oE '^[0-9]+ executions' out | awk '{ n += $1 } END { print n }')
    grep -qE "\`$name\` has $count executions" "$srcdir/docs/checking.md" ||
        complain "docs/checking.md has no: \`$name\` has $count executions"
done
explore -- ./explore MP
grep -q "all 6 executions" out || complain "MP has other executions"
# Each wait of the ring waits for one store, so all is in one order.
explore -l 100 -- ./explore ring
grep -q "all 1 executions" out || complain "the ring has other executions"
# Hosts that wait for kernels in a call of all ranks are in time for it. A busy
# machine may be late some of the times.
late() {
    IRIS_CHECK=weak IRIS_SEED=$1 IRIS_SCHEDULE=schedule ./explore ring >out 2>&1
    grep -q "^early" schedule
}
late 1 && late 2 && late 3 && late 4 && complain "the hosts are late"

# What it found can be made short and shown.
explore -- ./explore MP+relaxed
"$build/iris" replay -s -p -o short explored -- ./explore MP+relaxed >out 2>&1
grep -q "short: 1 of" out || complain "not short"
grep -q "== 0 .*not visible yet" out || complain "nothing shown"

# Too many, and programs that are not the same each time.
explore -l 5 -- ./replay right 3
[ $? = 2 ] || complain "5 executions are all"
grep -q "there are more executions" out || complain "nothing about more"
echo 0 >turn
# shellcheck disable=SC2016 # the inner shell's
explore -- sh -c 'read -r n <turn; echo $((n + 1)) >turn
    [ $((n % 2)) = 0 ] && exec ./explore MP; exec ./explore IRIW'
[ $? = 2 ] || complain "a program that changes"
grep -q "does not do the same" out || complain "nothing about the change"
explore -- ./no-such-program
[ $? = 2 ] || complain "no such program"
explore -l 0 -- ./explore MP
[ $? = 2 ] || complain "a limit of 0"
explore
[ $? = 2 ] || complain "no program"

# Faults in the tool, with programs of updates, whose order old values cannot stand
# for: it takes steps for independent, sleeps for too long, leaves
# old values out, or adds no other order of a race.
build() { # PATTERN REPLACEMENT: the tool with another line
    sed "s/$1/$2/" "$srcdir/tests/check/explorer.c" >explorer.c
    cmp -s explorer.c "$srcdir/tests/check/explorer.c" && complain "no line is like $1"
    # shellcheck disable=SC2086 # lists of words
    (cd "$build" && ./libtool --silent --mode=link --tag=CC ${CC:-cc} ${CFLAGS-} \
        -std=gnu11 -D_GNU_SOURCE -I. -Iinclude -I"$srcdir/include" -I"$srcdir/src" \
        -I"$srcdir" -no-install -o "$dir/mutant" "$dir/explorer.c" \
        tools/command.o tools/replay.o tools/replay_table.o \
        libirisi.la) || complain "the explorer does not compile: $1"
}
mutant() { # PATTERN REPLACEMENT NAME: outputs of NAME are missing
    build "$1" "$2"
    tool=$dir/mutant
    is_complete "$3" && complain "fault not noticed: $1"
    tool=$build/tests/check/explorer
}
mutant "(x->writes || y->writes) \&\&" "false \&\&" counter
mutant "if (!depend(&before->sleep" "if (!0 || depend(\&before->sleep" MP+update
mutant "node->old\[last\] + 1 < " "false \&\& 0 < " IRIW
mutant "node->todo |= lanes & -lanes" "(void)lanes" counter

# Without reduction, all orders of all steps: the outputs are the same ones.
build "a->lane == b->lane || a->is_own" "true || a->lane == b->lane"
for name in MP+relaxed MP+wg+workgroups counter+agent lock+relaxed; do
    tool=$dir/mutant
    explore --all -- ./explore $name
    sed -n 's/^[0-9]* executions: //p' out | sort >all
    [ -s all ] || complain "$name has no outputs"
    tool=$build/tests/check/explorer
    explore --all -- ./explore $name
    sed -n 's/^[0-9]* executions: //p' out | sort | cmp -s - all ||
        complain "$name has other outputs without reduction"
done
exit $failed
