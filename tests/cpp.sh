#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# <iris/iris.hpp>: its test, under AddressSanitizer if the compiler has it, and
# examples/15_cpp.cpp run on the CPU. GPU compilers parse both. In the long run
# the other GPU compilers make code, too, and planted faults make the test fail.
set -u
. "$(dirname "$0")/support/script.sh"
: "${CC=cc}" "${CFLAGS=}"
build=$PWD
export TMPDIR=$tmp IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_TIMEOUT_MS=120000
export IRIS_HEAP_BASES_FILES=0
long=${IRIS_TEST_LONG:-0}
mkdir -p "$tmp/include/iris" && ln -s "$root/device" "$tmp/include/iris/device"

# The C++ compiler beside the C compiler, which has the same sanitizers.
cxx=${CXX:-$(sed -E 's/\bclang\b/clang++/; s/\bgcc\b/g++/; s/\bcc$/c++/' <<<"$CC")}
${cxx} --version >/dev/null 2>&1 || {
    echo "skipped: no C++ compiler ($cxx)"
    exit 77
}
warnings="-Wall -Wextra -Wundef -pedantic -Werror"
link="-L$build/.libs -liris -Wl,-rpath,$build/.libs"
address=
case $CFLAGS in
*-fsanitize*) ;; # its own
*)
    echo 'int main() {}' >"$tmp/empty.cpp"
    ! $cxx -fsanitize=address -o "$tmp/empty" "$tmp/empty.cpp" 2>/dev/null ||
        address=-fsanitize=address
    ;;
esac

# Compiles and runs the test with the header in FOLDER: its status.
run_test() { # FOLDER
    # Word splitting is meant: flags are many words.
    # shellcheck disable=SC2086
    $cxx $CFLAGS -std=c++17 -O1 $address $warnings -I"$1" -I"$tmp/include" \
        -I"$root/include" -o "$tmp/test" "$here/cpp/test_cpp.cpp" $link &&
        (cd "$tmp" && timeout -k 10 300 ./test) 2>&1
}

run_test "$root/include" >"$tmp/log" && echo "passed: test_cpp.cpp $address" || {
    fail test_cpp.cpp
    grep -v '^\[Iris' "$tmp/log"
}

# The sample that the header begins with.
awk '/\*\// { exit } sub(/^ \*     /, "") { print }' \
    "$root/include/iris/iris.hpp" >"$tmp/sample.cpp"
# shellcheck disable=SC2086
grep -q main "$tmp/sample.cpp" && $cxx $CFLAGS -std=c++17 $warnings -fsyntax-only \
    -I"$tmp/include" -I"$root/include" "$tmp/sample.cpp" || fail "the header's sample"

# shellcheck disable=SC2086
if $cxx $CFLAGS -std=c++17 -O1 $warnings -I"$tmp/include" -I"$root/include" \
    -o "$tmp/example" "$root/examples/15_cpp.cpp" $link; then
    for ranks in 1 2 4; do
        for spawn in threads processes; do
            (cd "$tmp" && IRIS_SPAWN=$spawn ./example $ranks) >"$tmp/log" 2>&1 &&
                grep -q "^$ranks ranks: every sum is $((2 * ranks * (ranks + 1)))$" \
                    "$tmp/log" && echo "passed: 15_cpp, $ranks $spawn" || {
                fail "15_cpp, $ranks $spawn"
                cat "$tmp/log"
            }
        done
    done
else
    fail "15_cpp does not compile"
fi

# Reads or compiles the example by a GPU compiler: gpu LABEL COMPILER OPTION...
gpu() {
    local label=$1
    shift
    if ! command -v "$1" >/dev/null; then
        echo "skipped: $label, no $1"
    elif "$@" -std=c++17 -I"$tmp/include" -I"$root/include" -o "$tmp/out" \
        "$root/examples/15_cpp.cpp" >"$tmp/log" 2>&1; then
        echo "passed: $label"
    else
        fail "$label"
        head -n 20 "$tmp/log"
    fi
}
hip="clang++-19 -x hip --offload-arch=gfx942 --cuda-device-only -nogpulib
    --rocm-path=/usr --hip-path=/usr -Wall -Wextra -Werror"
# shellcheck disable=SC2086
[ ! -e /usr/include/hip/hip_runtime.h ] ||
    gpu "clang-19 gfx942" $hip -fsyntax-only
[ "$long" != 0 ] || exit $failed

# shellcheck disable=SC2086
[ ! -e /usr/include/hip/hip_runtime.h ] ||
    gpu "clang-19 gfx942, code" $hip -O2 -S
gpu "hipcc gfx90a" hipcc -x hip --offload-arch=gfx90a -c
gpu "nvcc sm_90" nvcc -x cu -arch=sm_90 -Werror all-warnings -c

# Each must make the test fail: fault WHAT SED-SCRIPT.
warnings=-w
fault() {
    mkdir -p "$tmp/fault/iris"
    sed "$2" "$root/include/iris/iris.hpp" >"$tmp/fault/iris/iris.hpp"
    if cmp -s "$root/include/iris/iris.hpp" "$tmp/fault/iris/iris.hpp"; then
        fail "nothing to plant: $1"
    elif run_test "$tmp/fault" >"$tmp/log" 2>&1; then
        fail "not seen: $1"
    elif grep ' error: ' "$tmp/log"; then
        fail "does not compile: $1"
    else
        echo "seen: $1"
    fi
}
fault "memory stays" '/(void)iris_free_later(iris, memory)/d'
fault "groups stay" '/(void)iris_group_destroy(iris, group)/d'
fault "streams stay" '/iris_stream_destroy(iris, stream)/d'
fault "an error does not throw" 's/throw error(status, iris_last_error());/(void)0;/'
fault "no message" 's/throw error(status, iris_last_error());/throw error(status, "");/'
fault "another exception is lost" '/std::rethrow_exception(job.thrown)/d'
fault "what has moved is freed, too" 's/handle_(std::exchange(other.handle_, nullptr))/handle_(other.handle_)/'
fault "a context is never finalized" '/(void)iris_finalize(iris_);/d'
exit $failed
