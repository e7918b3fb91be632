#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# IRIS_TRACE=nvtx and roctx: each call pushes a range for a profiler and pops it,
# also a call that fails. The profilers' libraries are fakes that write a file.
set -u
. "$(dirname "$0")/support/script.sh"
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_TIMEOUT_MS=60000
export IRIS_HEAP_BASES_FILES=0
export FAKE_RANGES=$tmp/ranges

# shellcheck disable=SC2086 # the compiler may be a command with options
make_fake() { # FILE OPTION...
    ${CC-cc} -shared -fPIC -o "$tmp/$1" "${@:2}" "$here/trace/fake_ranges.c"
}
# shellcheck disable=SC2086
build_program() {
    ./libtool --silent --mode=link --tag=CC ${CC-cc} ${CFLAGS-} -std=gnu11 \
        -I"$build" -I"$build/include" -I"$root/include" -no-install \
        -o "$tmp/program" "$here/trace/ranges.c" libiris.la -lpthread
}
mkdir "$tmp/nvtx" "$tmp/roctx" "$tmp/sdk"
check "the fake libraries compile" make_fake nvtx/libnvToolsExt.so.1 \
    -DPUSH=nvtxRangePushA -DPOP=nvtxRangePop
for file in roctx/libroctx64.so.4 sdk/librocprofiler-sdk-roctx.so.1; do
    check "$file compiles" make_fake $file -DPUSH=roctxRangePushA -DPOP=roctxRangePop
done
check "the fake profiler compiles" make_fake injected.so -DINJECTED
check "the program compiles" build_program
[ $failed = 0 ] || exit 1

# Each thread's pops end its latest push, and none is left.
balanced() { # FILE
    awk '$2 == "push" { depth[$1]++; pushes++ }
        $2 == "pop" && --depth[$1] < 0 { print "a pop without a push"; bad = 1 }
        END {
            for (t in depth)
                if (depth[t] != 0) { print "left: " depth[t]; bad = 1 }
            if (pushes < 20) { print pushes " pushes"; bad = 1 }
            exit bad
        }' "$1"
}
run_ranks() { # VARIABLE=VALUE...
    rm -f "$FAKE_RANGES"
    env "$@" timeout 120 ./iris run -n 2 "$tmp/program" >"$tmp/out" 2>&1
}
has_ranges() { # LABEL VARIABLE=VALUE...
    local label=$1 name
    run_ranks "${@:2}"
    verdict "$label runs" $?
    check "$label: ranges are balanced" balanced "$FAKE_RANGES"
    for name in malloc free "launch store_once" "put on stream" "host barrier" \
        "all_reduce 16 f32"; do
        grep -q " push $name" "$FAKE_RANGES" || fail "$label: no range '$name'"
    done
}
has_ranges "nvtx, a library" IRIS_TRACE=nvtx LD_LIBRARY_PATH="$tmp/nvtx"
has_ranges "nvtx, a profiler" IRIS_TRACE=nvtx NVTX_INJECTION64_PATH="$tmp/injected.so"
has_ranges "roctx" IRIS_TRACE=roctx LD_LIBRARY_PATH="$tmp/roctx"
has_ranges "roctx of rocprofiler-sdk" IRIS_TRACE=roctx LD_LIBRARY_PATH="$tmp/sdk"

# Planted: the judge sees a call without its pop, and one pop too many.
awk '$2 == "pop" && !gone { gone = 1; next } 1' "$FAKE_RANGES" >"$tmp/planted"
balanced "$tmp/planted" >"$tmp/out" && fail "a missing pop passes"
(cat "$FAKE_RANGES" && echo "1 pop") >"$tmp/planted"
balanced "$tmp/planted" >"$tmp/out" && fail "a pop too many passes"

# Without a library, or with one that takes no ranges, a warning says so.
warns() { # TEXT VARIABLE=VALUE...
    run_ranks "${@:2}"
    local ret=$?
    [ $ret = 0 ] && grep -qF -- "$1" "$tmp/out" && [ ! -e "$FAKE_RANGES" ]
    verdict "a warning: $1" $?
}
warns "IRIS_TRACE=nvtx: a profiler sees no ranges: no profiler has set" IRIS_TRACE=nvtx
warns "IRIS_TRACE=roctx: a profiler sees no ranges: the loader finds" IRIS_TRACE=roctx
warns "none.so: cannot open" IRIS_TRACE=nvtx NVTX_INJECTION64_PATH="$tmp/none.so"
warns "takes no ranges" IRIS_TRACE=nvtx FAKE_REFUSES=1 \
    NVTX_INJECTION64_PATH="$tmp/injected.so"

# One rank alone may be profiled: the heaps are equal.
rm -f "$FAKE_RANGES"
# shellcheck disable=SC2016 # the ranks' shell expands it
check "one rank of two is profiled" env LD_LIBRARY_PATH="$tmp/roctx" timeout 120 ./iris run -n 2 sh -c \
    '[ "$IRIS_RANK" = 1 ] || export IRIS_TRACE=roctx; exec "$0"' "$tmp/program"
[ "$(cut -d' ' -f1 "$FAKE_RANGES" 2>/dev/null | sort -u | wc -l)" = 1 ] ||
    fail "one rank of two has no ranges"
[ $failed = 0 ]
