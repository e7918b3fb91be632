#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# The memory model as a program for herd7, iris.bell and iris.cat, agrees with the
# litmus tests' verdicts, with all outcomes that tests/check/explorer finds, and with
# the race check. With a fault in the model it does not. HERD7 names another herd7.
set -u
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/checked.sh"
herd7=${HERD7:-herd7}
command -v "$herd7" >/dev/null || { echo "skipped: no herd7" && exit 77; }
export TMPDIR=$tmp

compile explore herd
cd "$tmp" || exit 1
mkdir tests && ./herd tests && ./herd | grep -v 'left out$' >list || exit 1

# Lines for each test: "NAME verdict Never", "NAME race", "NAME outcome 1 0 0 0".
run() { # MODEL
    "$herd7" -bell "$root/tests/check/iris.bell" -model "$1" tests/*.litmus \
        >out 2>errors || fail "herd7: $(cat errors)"
    awk '
        $1 == "Test" { name = $2 }
        $1 == "Flag" { print name, $2 }
        $1 == "Observation" { print name, "verdict", $3 }
        /^[0-9]:r[0-9]=/ {
            split("0 0 0 0", value)
            while (match($0, /r[0-9]=[0-9]+/)) {
                value[substr($0, RSTART + 1, 1) + 1] = substr($0, RSTART + 3, RLENGTH - 3)
                $0 = substr($0, RSTART + RLENGTH)
            }
            print name, "outcome", value[1], value[2], value[3], value[4]
        }' out | sort >model
}

# The tests whose verdicts in the table are others.
disagrees() {
    while IFS='|' read -r _ name verdict; do
        grep -qxF "$name verdict ${verdict/unseen/Sometimes}" model || echo "$name"
    done <list
}

# Whether the weak mode has the model's outcomes; those of the tests that it is known
# not to show in full are among the model's.
has_outcomes() { # TEST NAME VERDICT
    "$build/tests/check/explorer" --all -- ./explore "$1" 2>&1 </dev/null |
        sed -n "s/^[0-9]* executions: /$2 outcome /p" | sort -u >ours
    grep -F "$2 outcome " model >theirs
    [ -s ours ] && [ -z "$(comm -23 ours theirs)" ] || return 1
    [ "$3" = unseen ] || cmp -s ours theirs
}

# Whether both or neither find a data race.
has_races() { # TEST NAME
    local seed found=0
    for seed in $(seq 20); do
        IRIS_CHECK=race IRIS_SEED=$seed ./explore "$1" 2>&1 | grep -q "data race" &&
            found=1 && break
    done
    [ "$(grep -cxF "$2 race" model)" = $found ]
}

run "$root/tests/check/iris.cat"
[ "$(wc -l <list)" = "$(grep -c ' verdict ' model)" ] || fail "tests are missing"
wrong=$(disagrees)
[ -z "$wrong" ] || fail "other verdicts: $wrong"
while IFS='|' read -r test name verdict; do
    has_races "$test" "$name" || fail "$test: the race check does not agree"
    [ "$name" != CoRR2 ] || [ "${IRIS_TEST_LONG:-0}" != 0 ] || continue # takes long
    has_outcomes "$test" "$name" "$verdict" || fail "$test: other outcomes"
done <list
grep -qF "$(wc -l <list) of the $(./herd | wc -l) tests" "$root/docs/lab/litmus.md" ||
    fail "docs/lab/litmus.md has another number of tests"

# A model with a part left out.
fault() { # PATTERN REPLACEMENT TEST
    sed "s/$1/$2/" "$root/tests/check/iris.cat" >fault.cat
    cmp -s fault.cat "$root/tests/check/iris.cat" && fail "no line is like $1"
    run fault.cat
    disagrees | grep -qxF "$3" || fail "fault not noticed: $1"
}
fault 'both; rmw)\*' 'both; 0)*' MP+update
fault 'let chain = .*' 'let chain = [W]; (rf | po \& loc)*' MP+store
fault '| \[F & RELEASE\]; po; \[W & ATOMIC\]' '' MP+fences
fault '| \[R & ATOMIC\]; po; \[F & ACQUIRE\]' '' MP+fences
fault '(released; chain; rf & both; acquired) & both' 'released; chain; rf; acquired' MP+agent
fault 'W & ATOMIC & RELEASE' 'W \& ATOMIC' MP+relaxed
fault 'R & ATOMIC & ACQUIRE' 'R \& ATOMIC' MP+unacquired
fault '(po | rmw | synchronizes)+' 'po | rmw | synchronizes' ISA2
fault 'happens-before; eco? as' 'synchronizes; eco? as' CoRR
fault 'fr & both; co & both' 'fr; co' counter+agent
fault 'empty rmw' 'empty 0 \& rmw' counter
exit $failed
