# SPDX-License-Identifier: MIT
#
# Sourced by the scripts that read code for AMD GPUs, with $srcdir and a folder
# of their own, $dir.
# shellcheck shell=sh disable=SC2034,SC2154

# The device headers in $1, below folder $2 where kernels find them.
amd_headers() {
    mkdir -p "$2/iris" && ln -s "$1" "$2/iris/device"
}

# A file of kernels, on stdout: amd_kernels HEADER...
amd_kernels() {
    for header; do
        echo "#include <$header>"
    done
    for header in "$srcdir"/device/kernels/*.h; do
        echo "#include <iris/device/kernels/${header##*/}>"
    done
}

# Runs a compiler for a GPU: amd_compile OUTPUT INCLUDES GPU COMPILER...
amd_compile() {
    amd_output=$1
    amd_includes=$2
    amd_gpu=$3
    shift 3
    "$@" -x hip --offload-arch="$amd_gpu" --cuda-device-only -std=c++20 -O3 \
        -DIRIS_I_IMAGE=1 -I"$amd_includes" -I"$srcdir/include" \
        -I"$srcdir/tests" -S -o "$amd_output.s" "$amd_output.hip" \
        >"$amd_output.log" 2>&1
}

# Reads what came out: amd_read LABEL GPU ASSEMBLY
amd_read() {
    awk -v label="$1" -v gpu="$2" -f "$srcdir/tests/amd/assembly.awk" \
        -f "$srcdir/tests/amd/rules.awk" "$3"
}

amd_alone='-nogpulib --rocm-path=/usr --hip-path=/usr' # clang without ROCm
