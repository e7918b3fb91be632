# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: MIT
#
# What the scripts about AMD GPUs share: compiling kernels, reading what comes
# out, newer compilers and headers, two jobs at once. They set $srcdir and a
# folder of their own, $dir.

# Where what is downloaded stays: below the build folder.
amd_cache=${IRIS_TEST_CACHE:-$PWD/amd-newest}
amd_alone='-nogpulib --rocm-path=/usr --hip-path=/usr' # clang without ROCm
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

# Compiles $1.hip for a GPU to $1.s: amd_compile NAME INCLUDES GPU COMPILER...
amd_compile() {
    local name=$1 includes=$2 gpu=$3
    shift 3
    "$@" -x hip --offload-arch="$gpu" --cuda-device-only -std=c++20 -O3 \
        -DIRIS_I_IMAGE=1 -I"$includes" -I"$srcdir/include" \
        -I"$srcdir/tests" -S -o "$name.s" "$name.hip" >"$name.log" 2>&1
}

# Reads what came out: amd_read LABEL GPU ASSEMBLY
amd_read() {
    awk -v label="$1" -v gpu="$2" -f "$srcdir/tests/amd/assembly.awk" \
        -f "$srcdir/tests/amd/rules.awk" "$3"
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

# The newest clang there is: sets $amd_newest, what to call it with. It comes
# without HIP's headers, of which kernels need the words for where code runs.
amd_newest_clang() {
    local zig=$amd_cache/ziglang/ziglang word
    amd_fetch ziglang && chmod +x "$zig/zig" || return 1
    amd_newest=("$zig/zig" clang -nogpulib -nogpuinc -nostdinc
        -isystem "$zig/lib/include")
    for word in host device global shared constant; do
        amd_newest+=("-D__${word}__=__attribute__((${word}))")
    done
}

# The newest headers of HIP there are: sets $amd_newest_headers.
amd_newest_headers() {
    amd_newest_headers=$amd_cache/triton/triton/backends/amd/include
    amd_fetch triton backends/amd/include/
}
