#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build cpu
#
# Reports of a program with the shared library: the source line of each wait, by the
# job itself and by iris top. Never a wrong one: not without debug information, not in
# a stripped program, and not if another program has its file's name by now.
set -u
export LC_ALL=C
. "$(dirname "$0")/support/script.sh"
command -v addr2line >/dev/null || { echo "left out: no addr2line" && exit 77; }
go_apart
trap '[ -z "${job-}" ] || kill "$job" 2>/dev/null; rm -rf "$tmp"' EXIT

cat >hang.c <<'END'
#include <iris/device.h>
#include <iris/iris.h>

struct wait_args {
    const int64_t *context;
    uint64_t *word;
};

IRIS_KERNEL(wait_in_vain, struct wait_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg))
        (void)iris_wait_until_u64(dev, args->word, IRIS_CMP_EQ, 1); /* KERNEL */
}

static int rank_main(iris_t *iris, void *arg)
{
    struct wait_args args = {.context = iris_device_context(iris)};
    int status = iris_calloc_typed(iris, 1, &args.word);

    (void)arg;
    if (status == IRIS_OK && iris_rank(iris) == 0) {
        status = iris_launch(iris, wait_in_vain, 1, 1, &args, sizeof args, NULL);
        if (status == IRIS_OK)
            status = iris_stream_synchronize(iris, NULL); /* STREAM */
    } else if (status == IRIS_OK) {
        status = iris_barrier(iris, NULL, NULL); /* BARRIER */
    }
    iris_debug(iris, "status %d", status); /* no call is the last thing */
    return status;
}

/* Rank 0 does not return from this. */
static int __attribute__((noinline)) prepare(iris_t *iris)
{
    static uint64_t *word;

    return iris_rank(iris) == 0 ? rank_main(iris, NULL)
                                : (int)iris_calloc_typed(iris, 1, &word);
}

static int jump(iris_t *iris, void *arg)
{
    (void)arg;
    return prepare(iris) != 0 ? 1 : iris_barrier(iris, NULL, NULL);
}

int main(void)
{
    return iris_spawn(NULL, 2, JUMP ? jump : rank_main, NULL) != IRIS_OK; /* SPAWN */
}
END

compile() { # SOURCE OPTION...
    # shellcheck disable=SC2086
    ${CC:-cc} -O1 -DJUMP=0 "${@:2}" -o hang "$1" -I"$build/include" -I"$root/include" \
        -L"$build/.libs" -liris -lm -Wl,-rpath,"$build/.libs" || exit 1
}

place() { # MARK
    echo "(hang.c:$(grep -n "/\* $1 \*/" hang.c | cut -d: -f1))"
}

any_line='\([^ ()]*\.[ch]:[0-9]+\)'

has_lines() { # LABEL
    local mark
    for mark in KERNEL STREAM BARRIER; do
        grep -qF "$(place $mark)" out || fail "$1: no $(place $mark)"
    done
}

has_no_lines() { # LABEL
    ! grep -qE "$any_line" out || fail "$1: a source line"
    grep -q '(hang+0x[0-9a-f]*)' out || fail "$1: no place in the program"
}

hangs() { # SPAWN
    IRIS_SPAWN=$1 IRIS_TIMEOUT_MS=1000 ./hang >out 2>&1 && fail "the program does not hang"
}

compile hang.c -g
hangs threads
has_lines threads
hangs processes
has_lines processes

# A function that jumps into the library leaves no trace: no line, and not iris_spawn()'s.
compile hang.c -g -O2 -UJUMP -DJUMP=1
hangs processes
grep -q 'waits in iris_barrier' out || fail "no barrier"
! grep -qF "$(place SPAWN)" out || fail "the barrier has the line of iris_spawn()"
compile hang.c -g

# Another program takes the file's place while the first one runs.
IRIS_SPAWN=threads ./hang 2>/dev/null &
job=$!
for ((i = 0; i < 100; i++)); do
    "$build/iris" top $job >out 2>&1
    grep -q '^HUNG' out && break
done
has_lines "iris top"
{ seq -f '/* %g */' 50 && cat hang.c; } >later.c
compile later.c -g
"$build/iris" top $job >out 2>&1
has_no_lines "another program of that name"
kill $job && wait $job 2>/dev/null
job=

compile hang.c
hangs threads
has_no_lines "no debug information"
strip hang
hangs processes
has_no_lines "stripped"

[ $failed = 0 ] && echo "passed: reports with source lines, and none that is wrong"
