#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# The samples at the beginning of public headers compile. A sample is the text in the
# first comment that is indented by five columns or more. The programs of examples/calls,
# which manual pages quote, compile without a warning and run.
set -u
export LC_ALL=C
. "$(dirname "$0")/support/script.sh"
headers=$root/include/iris

sample() { # HEADER
    awk '/\*\// { exit } sub(/^ \*     /, "") { print } /^ \*$/ { print "" }' "$1"
}

# What samples use without declaring it.
prelude='#include <stdio.h>
#include <iris/device.h>
#include <iris/iris.h>
struct ring_args { const int64_t *context; float *inbox; };
extern const struct iris_kernel ring[1], kernel[1];
static struct ring_args args;
static iris_t *iris;
static iris_status_t status;
static iris_stream_t *stream;
static iris_group_t *group;
static iris_tensor_t x, y, weights, input, output;
static void *ptr;
static float *inbox, *data;
static uint64_t *flag;
static size_t bytes, count;
static int rank, peer, i;'

compile() { # HEADER
    {
        printf '%s\n' "$prelude"
        if sample "$1" | grep -q 'int main('; then
            sample "$1"
        else
            echo 'iris_status_t sample(void) {'
            sample "$1" | sed 's/^\.\.\.$//'
            echo 'return status; }'
        fi
    } >"$tmp/sample.c"
    ${CC:-cc} -std=c11 -fsyntax-only -Wall -Wno-unused -Werror -Iinclude -I"$root/include" \
        "$tmp/sample.c" 2>"$tmp/log" && return
    echo "the sample of $(basename "$1") does not compile:"
    cat "$tmp/log"
    return 1
}

samples=0
for header in "$headers"/*.h; do
    [ -n "$(sample "$header" | tr -d ' \n')" ] || continue
    samples=$((samples + 1))
    compile "$header" || failed=1
done
[ $samples -gt 10 ] || { echo "only $samples headers have a sample" && failed=1; }

# One that does not compile is found.
sed 's/iris_finalize(iris)/iris_finalise(iris)/' "$headers/context.h" >"$tmp/context.h"
compile "$tmp/context.h" >/dev/null && { echo "a wrong sample compiled" && failed=1; }
export IRIS_MODULE_DIR=$PWD/.libs IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_HEAP_BASES_FILES=0
unset IRIS_RANK IRIS_NUM_RANKS
flags="-Iinclude -I$root/include -L.libs -liris -Wl,-rpath,$PWD/.libs"
[ -n "${IRIS_TEST_LONG-}" ] || flags+=" -O0 -g0"
for program in "$root"/examples/calls/*.c; do
    # shellcheck disable=SC2086 # lists of flags
    ${CC:-cc} ${CFLAGS-} -std=gnu11 -Wall -Wextra -Werror -o "$tmp/program" "$program" $flags &&
        (cd "$tmp" && timeout 120 ./program >log 2>&1) ||
        { cat "$tmp/log" && echo "FAILED: ${program##*/}" && failed=1; }
done

[ $failed = 1 ] || echo "passed: the samples of $samples headers"
exit $failed
