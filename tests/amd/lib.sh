# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: MIT
#
# What the scripts about AMD GPUs share: compiling kernels, reading what comes
# out, newer compilers and headers, two jobs at once. They set $srcdir and a
# folder of their own, $dir.

# Where what is downloaded stays: below the build folder.
amd_cache=${IRIS_TEST_CACHE:-$PWD/amd-newest}
# A clang without ROCm, and without HIP's headers, of which kernels need the words
# for where code runs. clang's own take half a second to read.
amd_alone=(-nogpulib -nogpuinc -include stdlib.h)
for amd_word in host device global shared constant; do
    amd_alone+=("-D__${amd_word}__=__attribute__((${amd_word}))")
done
amd_failed=0
amd_count=0

# The device headers in $1, below folder $2 where kernels find them.
amd_headers() {
    mkdir -p "$2/iris" && ln -s "$1" "$2/iris/device"
}

# A file of kernels, on stdout: those of headers of tests/, and of the library's
# whose names match: amd_kernels PATTERN HEADER...
amd_kernels() {
    local header pattern=$1
    shift
    for header; do
        echo "#include <$header>"
    done
    for header in "$srcdir"/device/kernels/$pattern; do
        echo "#include <iris/device/kernels/${header##*/}>"
    done
}

# Compiles $1.hip for a GPU to $1.s: amd_compile NAME INCLUDES GPU COMPILER... No size
# or index of a kernel may lose its upper half.
# Code for gfx950 by a clang that has never heard of it is that of gfx942, whose
# memory model is the same, out of what headers have for gfx950.
amd_compile() {
    local name=$1 includes=$2 gpu=$3 arch=("--offload-arch=$3")
    shift 3
    if [ "$gpu" = gfx950 ] && [ "$1" = clang-19 ]; then
        arch=(--offload-arch=gfx942 -U__gfx942__ -D__gfx950__)
    fi
    "$@" -x hip "${arch[@]}" --cuda-device-only -std=c++20 -O3 \
        -Werror=shorten-64-to-32 -DIRIS_I_IMAGE=1 -I"$includes" -I"$srcdir/include" \
        -I"$srcdir/tests" -S -o "$name.s" "$name.hip" >"$name.log" 2>&1
}

# Reads what came out: amd_read LABEL GPU ASSEMBLY OPTION...
amd_read() {
    local label=$1 gpu=$2 code=$3
    shift 3
    awk -v label="$label" -v gpu="$gpu" "$@" \
        -f "$srcdir/tests/amd/assembly.awk" -f "$srcdir/tests/amd/rules.awk" \
        -f "$srcdir/tests/amd/library.awk" "$code"
}

# Runs a command on another processor, two at once; its lines are shown in the
# order of the calls.
amd_later() {
    amd_count=$((amd_count + 1))
    [ $amd_count -le 2 ] || amd_collect $((amd_count - 2))
    "$@" >"$dir/$amd_count.out" 2>&1 &
    amd_pids[amd_count]=$!
}

amd_collect() { # NUMBER
    [ "$1" -gt 0 ] || return
    wait "${amd_pids[$1]}" || amd_failed=$((amd_failed + 1))
    cat "$dir/$1.out"
}

# Waits for the last two. amd_failed says how many failed.
amd_finish() {
    amd_collect $((amd_count - 1))
    amd_collect $amd_count
}

# Unpacks a Python package as it is today below the cache, once; of a large one
# the files below a folder of it. IRIS_TEST_DOWNLOAD=1 or a long run asks for
# it: they are of hundreds of MB. Says in one line why not. amd_fetch NAME
# [FOLDER]
amd_fetch() {
    [ ! -d "$amd_cache/$1" ] || return 0
    if [ -z "${IRIS_TEST_DOWNLOAD-}${IRIS_TEST_LONG-}" ]; then
        echo "newest $1: skipped, IRIS_TEST_DOWNLOAD=1 downloads it"
    elif ! python3 -m pip --version >/dev/null 2>&1; then
        echo "newest $1: skipped, no pip"
    elif ! amd_unpack "$@"; then
        echo "newest $1: skipped, pip gets no such package"
    else
        return 0
    fi
    return 1
}

amd_unpack() {
    mkdir -p "$amd_cache" &&
        python3 -m pip download -q --retries 1 --timeout 20 --no-deps \
            --only-binary :all: -d "$dir/$1" "$1" >/dev/null 2>&1 &&
        python3 -c '
import glob, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0])
names = [n for n in wheel.namelist() if n.startswith(sys.argv[3])]
wheel.extractall(sys.argv[2], names)
' "$dir/$1" "$dir/$1.new" "$1/${2-}" &&
        mv "$dir/$1.new" "$amd_cache/$1"
    local ret=$?
    rm -rf "${dir:?}/$1"
    return $ret
}

# The newest clang there is: sets $amd_newest, what to call it with. Only the
# headers that are its own come from the package, the others from this machine.
amd_newest_clang() {
    local zig=$amd_cache/ziglang/ziglang
    amd_fetch ziglang && chmod +x "$zig/zig" || return 1
    amd_newest=("$zig/zig" clang "${amd_alone[@]}" -isystem "$zig/lib/include")
}

# The newest headers of HIP there are: sets $amd_newest_headers.
amd_newest_headers() {
    amd_newest_headers=$amd_cache/triton/triton/backends/amd/include
    amd_fetch triton backends/amd/include/
}
