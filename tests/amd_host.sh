#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# Compiles the host half for AMD GPUs against HIP's own headers, like a build
# with --with-hip-platform=amd, with all warnings as errors. It uses the
# system's headers and the newest ones, which amd/lib.sh downloads. It links
# nothing and needs no GPU.

srcdir=${srcdir:-$(dirname "$0")/..}
srcdir=$(cd "$srcdir" && pwd) || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
. "$srcdir/tests/amd/lib.sh"

amd_headers "$srcdir/device" "$dir/include" || exit 1
warnings="-Wall -Wextra -Wundef -Wshadow -Wstrict-prototypes -Werror"
checked=0
failed=0

# What configure would find with these headers: settings INCLUDES
settings() {
    local name
    echo '#define _GNU_SOURCE 1'
    echo '#define IRIS_HIP_NVIDIA 0'
    echo '#define IRIS_HIP_FAKE 0'
    echo '#define PACKAGE_VERSION "0"'
    for name in hipDeviceAttributeWallClockRate hipMemAllocationTypeUncached; do
        grep -qw $name "$1/hip/hip_runtime_api.h"
        echo "#define HAVE_DECL_${name^^} $((1 - $?))"
    done
}

# check COMPILER INCLUDES
check() {
    local version file
    command -v "$1" >/dev/null 2>&1 || return
    version=$(sed -n 's/^#define HIP_VERSION_M[AI][JN]OR  *//p' \
        "$2/hip/hip_version.h" | tr '\n' '.')
    checked=$((checked + 1))
    settings "$2" >"$dir/include/config.h"
    for file in "$srcdir"/src/backend_hip/*.c; do
        "$1" -std=gnu11 -fsyntax-only $warnings -D__HIP_PLATFORM_AMD__=1 \
            -I"$dir/include" -I"$srcdir/include" -I"$srcdir/src" \
            -isystem "$2" "$file" >"$dir/log" 2>&1 && continue
        echo "HIP ${version%.}, $1: ${file##*/} FAILED"
        head -20 "$dir/log" | cut -c 1-240
        failed=1
        return
    done
    echo "HIP ${version%.}, $1: ok"
}

amd_newest_headers
for includes in "${ROCM_PATH:-/opt/rocm}/include" /usr/include \
    "$amd_newest_headers"; do
    [ -e "$includes/hip/hip_runtime_api.h" ] || continue
    check gcc "$includes"
    check clang "$includes"
done
if [ $checked = 0 ]; then
    echo "skipped: neither HIP's headers nor a compiler is here"
    exit 77
fi
exit $failed
