#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# iris check: all checks of a program by one command (tests/check/command.c): a race
# that a run without a seed may hide is told once, with the seeds that show it; a
# correct program is clean; failures are told with their output.
set -u
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/checked.sh"
unset IRIS_SEED IRIS_SCHEDULE IRIS_REPLAY IRIS_CHECK IRIS_SPAWN

compile command
mv "$tmp/command" "$tmp/talk"
# shellcheck disable=SC2086
${CC:-cc} -std=gnu11 -Iinclude -I"$root/include" -L.libs -o "$tmp/alone" -x c - -liris <<'END' || exit 1
#include <iris/iris.h>
int main(void)
{
    iris_t *iris;
    return iris_init(NULL, &iris) != IRIS_OK || iris_finalize(iris) != IRIS_OK;
}
END
cd "$tmp" || exit 1
mkdir tmp && export TMPDIR=$tmp/tmp

expect() { # STATUS ARGUMENT...
    local status=$1
    shift
    "$build/iris" check "$@" >out 2>err </dev/null
    [ $? = "$status" ] && [ ! -s err ] && return
    echo "FAILED: not status $status, or messages: iris check $*"
    cat out err
    failed=1
}

has() { # TEXT...
    local text
    for text in "$@"; do
        grep -qe "$text" out && continue
        echo "FAILED: nothing like $text"
        cat out
        failed=1
    done
}

put=$(grep -n "/\* put \*/" "$root/tests/check/command.c" | cut -d: -f1)
use=$(grep -n "/\* use \*/" "$root/tests/check/command.c" | cut -d: -f1)

expect 1 -n 2 -s 3 -- ./talk bug
has "^plain: 1 run, .* 0 new races" "^race: 4 runs, .* 1 new race" "^weak: 3 runs" \
    "^data race on " "^    command.c:$put: " "^    command.c:$use: " \
    "^    seen in [34] runs, .*with seed 1 2 3; again: .*iris check -m race -n 2 -- ./talk bug" \
    "^1 race and 0 other failures in 8 runs"
[ "$(grep -c 'data race' out)" = 1 ] || { echo "FAILED: not once" && failed=1; }

expect 0 -n 2 --seeds 2 -- ./talk right
has "^0 races and 0 other failures in 6 runs" "ordinary pointers were not seen: .*iriscc --check"

# The weak mode shows what a wrong value does; the race check names the line.
expect 1 -n 2 -- ./talk stale
has "^exit status 1; its output ends with" "seen in [0-9]* runs*, with seed " "missing: release"

expect 1 -n 2 -s 1 -- ./talk fails
has "^exit status 3; its output ends with" "^    seen in 1 run, without a check$"
expect 1 -n 1 -s 1 -- sh -c 'kill -SEGV $$'
has "^ended by signal 11"
expect 1 -n 1 -s 0 -t 1 -- sleep 30
has "^no end within 1 s"
expect 0 -n 3 -- ./alone
has "^race: no seeds, since the program does not start 3 ranks by iris_spawn()" \
    "in 2 runs$"

# A clean run without a seed says that others may differ, in one line.
"$build/iris" check -m race -n 2 -- ./talk right >out 2>&1
has "no race in this run; .*iris check"
[ "$(wc -l <out)" = 1 ] || { echo "FAILED: not one line" && cat out && failed=1; }
IRIS_SEED=1 "$build/iris" check -n 2 -- ./talk right >out 2>&1
[ -s out ] && echo "FAILED: with a seed it says something" && cat out && failed=1
[ -z "$(ls "$TMPDIR")" ] || { echo "FAILED: left: $(ls "$TMPDIR")" && failed=1; }

# Output that a full disk cuts off may lack races: that is no clean run.
# shellcheck disable=SC2016 # the inner shell's own
full='mount -t tmpfs -o size=16k tmpfs "$TMPDIR" && "$@"'
if unshare -rm sh -c "$full" sh true 2>/dev/null; then
    unshare -rm sh -c "$full" sh "$build/iris" check -n 1 -s 0 -- \
        sh -c 'head -c 100000 /dev/zero; exit 0' >out 2>err </dev/null
    [ $? = 1 ] && grep -q "output is not whole" err ||
        { echo "FAILED: a full disk" && cat out err && failed=1; }
else
    echo "left out: a full disk, without namespaces"
fi
TMPDIR=/dev/null "$build/iris" check -n 1 -- true >out 2>&1
[ $? = 1 ] && grep -q "Not a directory" out || { echo "FAILED: no folder" && cat out && failed=1; }
exit $failed
