#!/bin/sh
# SPDX-License-Identifier: MIT
# inputs: sources first
#
# Compiles every function of the device API with every installed compiler: gcc and
# clang as C and as C++, hipcc, clang for gfx942, and nvcc. Prints one line for
# each. In the short run gcc makes code as C and as C++, and the others only check
# the source. amd_code.sh makes code of all of it by clang and hipcc.

. "$(dirname "$0")/support/script.sh"

# The headers as they are installed, whether or not configure has run.
mkdir -p "$tmp/include/iris" &&
    ln -s "$root/device" "$tmp/include/iris/device" || exit 1
includes="-I$tmp/include -I$root/include -I$root/tests"
warnings="-Wall -Wextra -Wundef -Werror"
long=${IRIS_TEST_LONG:-0}
short=-fsyntax-only
[ $long = 0 ] || short="-O2 -c"

# A program of all headers, and all functions. install.sh compiles each header alone.
program() {
    if [ "$1" = hip ]; then
        echo '#include <hip/hip_runtime.h>'
    fi
    (cd "$root" && find device -name '*.h' ! -path '*/kernels/*' | sort) | grep -vE '/(target_[a-z]*|cpu|series)\.h$' |
        sed 's/.*/#include <iris\/&>/'
    echo '#include "support/device_api.h"'
    echo 'const struct iris_kernel *api_kernel(size_t i);'
    echo 'const struct iris_kernel *api_kernel(size_t i)'
    echo '{ return api_kernels[i]; }'
}
program c >"$tmp/api.c"
program c >"$tmp/api.cpp"
program c >"$tmp/api.cu"
program c >"$tmp/device.hip" # for a device pass alone, which needs no ROCm
program hip >"$tmp/api.hip"

# one LABEL FILE COMPILER OPTION...
one() {
    label=$1
    file=$2
    shift 2
    if ! command -v "$1" >/dev/null 2>&1; then
        echo "$label: skipped, no $1"
    elif "$@" $includes -o "$tmp/out" "$tmp/$file" >"$tmp/log" 2>&1; then
        echo "$label: ok"
    else
        echo "$label: FAILED"
        head -40 "$tmp/log" | cut -c 1-240
        failed=1
    fi
}

# refuses LABEL COMPILER STATEMENT: a type outside the rows must not compile.
refuses() {
    printf '%s\n' '#include <iris/device.h>' 'void f(iris_dev_t dev);' \
        'void f(iris_dev_t dev)' "{ $3 }" >"$tmp/refused.$1"
    if ! command -v "$2" >/dev/null 2>&1; then
        echo "$1 refuses $3: skipped, no $2"
    elif "$2" $includes -c -o "$tmp/out" "$tmp/refused.$1" >"$tmp/log" 2>&1
    then
        echo "$1 refuses $3: FAILED, it compiles"
        failed=1
    else
        echo "$1 refuses $3: ok"
    fi
}

for compiler in gcc clang; do
    how="-O2 -c"
    # No size or index loses its upper half.
    [ $compiler = gcc ] || how="$short -Wshorten-64-to-32"
    one "$compiler -std=c11" api.c $compiler -std=c11 -pedantic $how $warnings
    [ $long = 1 ] || continue # tests are compiled so, too
    one "$compiler -std=gnu11 -O0" api.c $compiler -std=gnu11 -O0 $warnings -c
    one "$compiler -fsanitize=thread" api.c $compiler -std=gnu11 -O1 \
        -fsanitize=thread $warnings -c
done
for compiler in g++ clang++; do
    one "$compiler -std=c++17" api.cpp $compiler -std=c++17 -pedantic $short \
        $warnings
done
one "hipcc gfx90a" api.hip hipcc --offload-arch=gfx90a $short $warnings \
    -Wno-unused-command-line-argument
one "clang-19 gfx942" device.hip clang-19 -x hip --offload-arch=gfx942 \
    --cuda-device-only -nogpulib --rocm-path=/usr --hip-path=/usr \
    $warnings -fsyntax-only
if [ $long = 1 ]; then # twenty seconds
    one "nvcc sm_90" api.cu nvcc -arch=sm_90 -c
fi

refuses c gcc 'long long *p = 0; iris_store(dev, p, 1, 0);'
refuses c gcc 'float *p = 0; iris_atomic_xor(dev, p, 1, 0, 0, 0);'
refuses c gcc 'uint8_t *p = 0; iris_wait_until(dev, p, IRIS_CMP_EQ, 1);'
refuses cpp g++ 'long long *p = 0; iris_store(dev, p, 1, 0);'

exit $failed
