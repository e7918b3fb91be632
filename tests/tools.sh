#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# The command iris: its subcommands have one style of help and one meaning of exit
# statuses, a misspelled one is told the nearest, run and check start ranks and pass
# signals and statuses on, and bash completes names and options.
set -u
. "$(dirname "$0")/support/script.sh"

expect() { # STATUS TEXT ARGUMENT...
    local expected=$1 text=$2 ret
    shift 2
    "$build/iris" "$@" >"$tmp/out" 2>&1 </dev/null
    ret=$?
    [ $ret = "$expected" ] || fail "iris $* exits with $ret"
    grep -qe "$text" "$tmp/out" || fail "iris $* prints nothing like: $text"
}

# One style of help.
expect 0 "^Subcommands:" --help
tools=$(sed -n '/^Subcommands:/,/^$/s/^  *\([a-z]*\) .*/\1/p' "$tmp/out")
[ "$(wc -w <<<"$tools")" = 9 ] || fail "other subcommands: $tools"
expect 0 "^iris [0-9.]*$" --version
expect 2 "^Usage: iris "
for tool in $tools; do
    expect 0 "^Usage: iris $tool " "$tool" --help
    grep -q "^Exit status: " "$tmp/out" || fail "iris $tool --help has no exit status"
    [ -z "$(awk 'length > 80' "$tmp/out")" ] || fail "iris $tool --help has long lines"
    cp "$tmp/out" "$tmp/help"
    expect 0 "^Usage: " help "$tool"
    cmp -s "$tmp/help" "$tmp/out" || fail "iris help $tool prints another text"
    expect 0 "^Usage: iris $tool " "$tool" --usage
    expect 0 "^iris [0-9.]*$" "$tool" -V
    expect 2 "unrecognized option '--no-such-option'" "$tool" --no-such-option
done
for wrong in "info word" "top --json" "top -j -c 1" "trace" "trace frob" "trace diff one" \
    "sim" "sim run" "sim -s 0 run x" "replay x ./program" "run ./program" "run -n 2" \
    "run -n 0 ./program" "run -n 2x ./program" "check -n 2 -m no ./program" "check -n 2" \
    "bench word" "bench -n 0" "bench -s 3" "bench -o none" "probe -n 1"; do
    # shellcheck disable=SC2086 # words
    expect 2 "iris" $wrong
done

# How many arguments, and a file of another kind.
expect 2 "^iris trace report: pass at least 1 argument, not 0;" trace report
expect 2 "^iris trace diff: pass 2 arguments, not 1;" trace diff one
expect 1 "byte 0: the file is not JSON; pass another" trace report "$here/tools.sh"

# The nearest name.
expect 2 'did you mean "probe"' porbe
expect 2 'did you mean "bench"' help bnech
expect 2 'did you mean "trace"' traces
expect 2 '"frobnicate" is not a subcommand$' frobnicate
expect 2 '"averylongnameofasubcommand" is not' averylongnameofasubcommand

# run: each rank's environment, statuses, options of the program.
# shellcheck disable=SC2016 # the ranks' shells expand it
expect 0 '^2 of 3 -n 5$' run -n 3 sh -c 'echo "$IRIS_RANK of $IRIS_NUM_RANKS $*"' sh -n 5
# shellcheck disable=SC2016
expect 0 '^0 of 1$' run --ranks=1 -- sh -c 'echo "$IRIS_RANK of $IRIS_NUM_RANKS"'
# shellcheck disable=SC2016
expect 4 . run -n 3 -- sh -c 'echo x; [ "$IRIS_RANK" = 0 ] || exit $((3 + IRIS_RANK))'
# shellcheck disable=SC2016
expect 137 . run -n 2 -- sh -c 'echo x; kill -KILL $$'
expect 127 "/no/such/program: No such file" run -n 2 /no/such/program
expect 126 "Permission denied" run -n 2 /dev/null
# shellcheck disable=SC2016
"$build/iris" run -n 2 sh -c 'echo "$IRIS_JOB_ID"' >"$tmp/jobs"
# shellcheck disable=SC2016
"$build/iris" run -n 1 sh -c 'echo "$IRIS_JOB_ID"' >>"$tmp/jobs"
[ "$(sort -u "$tmp/jobs" | wc -l)" = 2 ] || fail "jobs: $(cat "$tmp/jobs")"

# A signal goes on to all ranks, each of which says that it waits for it.
mkfifo "$tmp/ready"
# shellcheck disable=SC2016
"$build/iris" run -n 2 sh -c 'trap "exit 9" TERM; echo >"$0"; while :; do sleep 0.1; done' \
    "$tmp/ready" &
pid=$!
exec 3<>"$tmp/ready"
read -r <&3 && read -r <&3
kill -TERM $pid
wait $pid
[ $? = 9 ] || fail "SIGTERM was not passed on"

# check: the settings of the ranks, as processes or as threads.
# shellcheck disable=SC2016
settings='echo $IRIS_CHECK $IRIS_BACKEND $IRIS_SIM_DEVICE ${IRIS_RANK-none} $IRIS_NUM_RANKS ${IRIS_SPAWN-}'
unset IRIS_SPAWN IRIS_RANK IRIS_SEED
expect 0 "^race sim cpu 1 2$" check -n 2 -m race -- sh -c "$settings"
expect 0 "^bounds sim cpu 0 1$" check -n 1 --mode bounds -- sh -c "$settings"
expect 0 "^weak sim cpu none 3 threads$" check -n 3 -m weak -- sh -c "$settings"
IRIS_SEED=1 expect 0 "^race sim cpu none 3 threads$" check -n 3 -- sh -c "$settings"
expect 5 . check -n 2 -m race -- sh -c 'echo x; exit 5'
expect 1 "^no check ran, because the program did not start" check -n 2 /no/such/program
grep -q " in 1 run$" "$tmp/out" || fail "a program that does not exist was run again"

# A program that is one rank by itself is not taken for three.
cat >"$tmp/alone.c" <<'END'
#include <iris/iris.h>
int main(void)
{
    iris_t *iris;
    return iris_init(NULL, &iris) != IRIS_OK || iris_finalize(iris) != IRIS_OK;
}
END
case "${CFLAGS-} ${CC-}" in
*sanitize*) echo "left out: programs are not linked with the sanitizer" ;;
*)
    # shellcheck disable=SC2086 # the compiler may be a command with options
    ${CC:-cc} -std=gnu11 -Iinclude -I"$here/../include" -L.libs -Wl,-rpath,"$build/.libs" \
        -o "$tmp/alone" "$tmp/alone.c" -liris || exit 1
    export IRIS_HEAP_BASES_FILES=0
    expect 1 "ran 1 rank, not 3; .*iris_spawn" check -n 3 -m weak -- "$tmp/alone"
    expect 0 "." check -n 1 -m weak -- sh -c "echo x; exec $tmp/alone"
    ;;
esac

# probe: a line for each check.
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu
expect 0 "^data  *0 1  *ok " probe -b 1048576 -r 2
grep -q "^library  *all -  *ok " "$tmp/out" || fail "no library"
IRIS_BACKEND=none expect 1 "^iris probe: " probe
expect 2 "pass --all, too" probe --gpus 2
expect 2 "no-such-run: the runs are one-threads-fine one-" probe --all --only no-such-run
HIP_VISIBLE_DEVICES='' CUDA_VISIBLE_DEVICES='' FAKEHIP_DEVICES=0 \
    expect 1 "there is no GPU" probe --all

# Completion.
COMPREPLY=()
# shellcheck source=/dev/null
. "$here/../tools/completion/iris"
completes() { # EXPECTED WORD...: the last word
    COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
    _iris
    [ "${COMPREPLY[*]}" = "$1" ] || fail "$(printf '%s ' "${@:2}"): ${COMPREPLY[*]}"
}
completes "replay" "$build/iris" rep
completes "info" "$build/iris" help in
completes "--shrink" "$build/iris" replay --sh
completes "merge" "$build/iris" trace m
completes "summary resolve merge diff report order" "$build/iris" trace ""
completes "collective" "$build/iris" sim c
cd "$tmp" || exit 1
echo >trace.json
completes "trace.json" "$build/iris" trace summary tra

[ $failed = 0 ] && echo passed
exit $failed
