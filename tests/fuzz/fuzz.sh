#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Builds and runs the programs for libFuzzer, in the folder of a build by clang with
# -fsanitize=fuzzer-no-link: fuzz.sh [--long]
# shellcheck disable=SC2046,SC2086 # lists are words
set -u
here=$(cd "$(dirname "$0")" && pwd)
long=0 pids="" ret=0 jobs=$(nproc)
[ "${1-}" != --long ] || long=1

# Always the same inputs, so that a change is judged by itself: each program
# some seconds of them, all at once. In the long run other ones each time, 5
# minutes each, as many programs at once as there are processors; what they
# learn is kept for the next time.
fuzz_runs="alloc:30000 control:60000 rendezvous:2000 settings:30000 structs:30000"
fuzz_start() { # PROGRAM
    local name=${1##*/fuzz_} how
    if [ $long = 1 ]; then
        mkdir -p "corpus/$name" || return
        how="-max_total_time=300 corpus/$name"
    else
        how=${fuzz_runs#*"$name:"}
        how="-seed=1 -runs=${how%% *}"
    fi
    exec "$1" $how -max_len=4096 -timeout=20 -artifact_prefix="found/$name-" \
        -verbosity=1 -print_final_stats=1 >"$1.log" 2>&1
}

# Waits for those that run: $pids, $ret of phase_fuzz. What a failure takes to
# be repeated is in the output, since the files may be gone with the machine.
fuzz_end() {
    local one name input
    for one in $pids; do
        name=${one##*/fuzz_}
        wait "${one%%:*}" && grep -a '^Done' "${one#*:}.log" | sed "s/^/$name: /" &&
            continue
        ret=1
        echo "--- ${one#*:} failed"
        grep -avE '^#|^INFO|NEW_FUNC|Uses:|dictionary|^stat::|^0x|^\\|^ *$' "${one#*:}.log" |
            head -n 60
        for input in found/"$name"-*; do
            [ -e "$input" ] || continue
            echo "again: echo $(base64 -w 0 "$input") | base64 -d >input && ${one#*:} input"
        done
    done
    pids=""
}

make -j"$jobs" $(make -s print-fuzz-programs) && rm -rf found && mkdir found || exit
for program in $(make -s print-fuzz-programs); do
    fuzz_start "$program" &
    pids="$pids $!:$program"
    [ $long = 0 ] || [ "$(wc -w <<<"$pids")" -lt "$jobs" ] || fuzz_end
done
if [ $long = 1 ]; then
    "$here/fuzz_iriscc.sh" 300 || ret=1
else
    "$here/fuzz_iriscc.sh" 300 1 200 || ret=1
fi
fuzz_end
exit $ret
