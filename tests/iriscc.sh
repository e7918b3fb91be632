#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: gpus
#
# iriscc: compiles C that is not C++ for GPUs, too, and makes one object for
# both. After an error it leaves no files and prints the place.
set -u
srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd)
iriscc=$PWD/iriscc
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

expect() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$dir/log" 2>&1; then
        echo "ok: $what"
    else
        echo "FAILED: $what"
        head -n 20 "$dir/log"
        failed=1
    fi
}

# In a build with the fake HIP runtime kernels stand in for their GPU code.
if grep -q choose_fake "$iriscc"; then
    CC=${CC%% -I*}
    export IRISCC_CC=${CC:-cc} IRISCC_PLATFORM=''
fi
[ -x "$iriscc" ] || { echo "no iriscc in $PWD" && exit 77; }
mkdir -p "$dir/include/iris" && ln -s "$srcdir/device" "$dir/include/iris/device"
flags="-I$dir/include -I$srcdir/include"

# Everything that C has and C++ has not, around a kernel.
cat >"$dir/both.c" <<'EOF'
#include <iris/device.h>
#include <iris/iris.h>
#include <stdlib.h>

/* { not a brace } */
static const char *const names[] = {"one {", "two }"};
static const char *const text = "three \
{";
const struct { int a, b; } table[] = {[1] = {.b = 2, .a = 1}};

struct args { const int64_t *context; uint64_t *out; };

static uint64_t *unlike_cpp(size_t n, int class)
{
    uint64_t *words = malloc(n * sizeof *words); /* no cast */
    struct args args = (struct args){.out = words};

    return class == '{' || text[0] ? args.out : words;
}

IRIS_DEVICE uint64_t twice(uint64_t x)
{
    return 2 * x;
}

IRIS_KERNEL(fill, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_LANES (wg, i, 100) {
        iris_store(dev, &args->out[i], twice(i), dev.rank);
    }
}

static struct args *last(void)
{
    static struct args kept;

    kept.out = unlike_cpp(3, names[0][4]);
    return &kept + table[0].a;
}

int main(void)
{
    return fill->gpu_image == NULL || last() == NULL;
}
EOF
sed 's/twice(i)/twice(i) + nowhere/' "$dir/both.c" >"$dir/bad.c"

image() { nm "$1" | grep -q ' r iris_i_gpu_image$'; }
no_image() { ! image "$1"; }
fails() { ! "$@"; }

# Fails with one line of its own, which has each of the words; leaves no file.
says() { # WHAT COMMAND... -- WORD...
    local what=$1 command=() lines word
    shift
    while [ "$1" != -- ]; do
        command+=("$1")
        shift
    done
    shift
    (cd "$dir/empty" && "${command[@]}") >"$dir/log" 2>&1 &&
        { echo "FAILED: $what: it passes" && failed=1 && return; }
    lines=$(grep -c '^iriscc: ' "$dir/log")
    for word; do
        [ "$lines" = 1 ] && grep -q -- "^iriscc: .*$word" "$dir/log" &&
            [ -z "$(ls "$dir/empty")" ] && continue
        echo "FAILED: $what: no line with '$word', or files are left"
        cat "$dir/log" && ls "$dir/empty"
        failed=1
        return
    done
    echo "ok: $what"
}

mkdir "$dir/empty"
expect "help" bash -c "$iriscc --help | grep -q 'usage: iriscc'"
# Every option that the script itself takes, and every variable.
for word in $(sed -n 's/^    \(--[a-z-]*\).*) .*/\1/p; s/.*\(IRISCC_[A-Z_]*\).*/\1/p' \
    "$iriscc" | sort -u); do
    expect "help has $word" bash -c "'$iriscc' --help | grep -q -- '^  $word'"
done
for file in x.cpp x.cc x.cxx x.C; do
    touch "$dir/$file"
    says "$file is refused" "$iriscc" -c "$dir/$file" -- "$file: that is C++" \
        "compiles C" "compile the rest with c++"
    says "$file is refused when linking" "$iriscc" -o prog "$dir/both.c" \
        "$dir/$file" -- "$file: that is C++"
done
says "x.cu is refused" "$iriscc" -c x.cu -- "x.cu: that is CUDA" "with nvcc"
says "x.hip is refused" "$iriscc" x.hip -- "x.hip: that is HIP" "with hipcc"
says "-x c++ is refused" "$iriscc" -x c++ -c x -- "-x c++: that is another"
says "-c without a source" "$iriscc" -c x.o -- "no file to compile" "\*\.c"
says "an option without its argument" "$iriscc" -c "$dir/both.c" -o -- \
    "-o: its argument is missing"
says "an empty --offload-arch" "$iriscc" --offload-arch= -c "$dir/both.c" -- \
    "names no GPU" "--offload-arch=ARCH"
says "--offload-arch without a GPU compiler" env IRISCC_GPU_CC= "$iriscc" \
    --offload-arch=sm_90 -c "$dir/both.c" -- "--offload-arch=sm_90" \
    "no GPU compiler" "leave the option out"
says "a platform that is none" env IRISCC_GPU_CC=true IRISCC_ARCHS=sm_90 \
    IRISCC_PLATFORM=other "$iriscc" -c "$dir/both.c" -- \
    "IRISCC_PLATFORM is 'other'" "amd or nvidia"
expect "the preprocessor gets Iris's headers" bash -c \
    "'$iriscc' --show -E '$dir/both.c' | grep -q -- ' -I'"
expect "--cpu-only compiles" \
    "$iriscc" --cpu-only $flags -c -o "$dir/cpu.o" "$dir/both.c"
expect "--cpu-only adds no image" no_image "$dir/cpu.o"

try() { # PLATFORM COMPILER ARCH OTHERS-ARCH UNKNOWN-ARCH
    export IRISCC_PLATFORM=$1 IRISCC_GPU_CC=$2 IRISCC_ARCHS=$3
    if ! command -v "$2" >/dev/null; then
        echo "skipped: $1, no $2"
        return
    fi
    expect "$1: compiles C" \
        "$iriscc" $flags -O2 -c -o "$dir/$1.o" "$dir/both.c"
    expect "$1: the object has an image" image "$dir/$1.o"
    expect "$1: the image is the object's own" bash -c \
        "! nm '$dir/$1.o' | grep -q ' [A-Z] iris_i_gpu_image'"
    expect "$1: objects alone are linked" bash -c \
        "'$iriscc' --show '$dir/$1.o' -o prog | grep -q -- '-liris .*-o prog'"
    "$iriscc" $flags -flto -fPIC -c -o "$dir/lto.o" "$dir/both.c" &&
        ${CC:-cc} -flto -shared -o "$dir/lto.so" "$dir/lto.o" || failed=1
    expect "$1: -flto keeps the image" image "$dir/lto.so"
    expect "$1: an error in a kernel is an error" \
        fails "$iriscc" $flags -c -o "$dir/bad.o" "$dir/bad.c"
    sed 's/^/    /' "$dir/log" | head -n 2
    expect "$1: and leaves no object" fails test -e "$dir/bad.o"
    says "$1: the other vendor's GPU" "$iriscc" "--offload-arch=$4" -c \
        "$dir/both.c" -- "--offload-arch=$4" "such as $3"
    # Of the right form, and no GPU.
    says "$1: a GPU that the compiler does not know" "$iriscc" $flags \
        "--offload-arch=$3,$5" -c "$dir/both.c" -- \
        "no GPU code of .*both.c: $2 cannot compile for $5"
    ! grep -q IRIS_DEVICE "$dir/log" || { echo "FAILED: $1: a wrong hint" && failed=1; }
    line=$(grep -n nowhere "$dir/bad.c" | cut -d: -f1)
    IRISCC_CC=true "$iriscc" --show $flags -c "$dir/bad.c" >"$dir/show" 2>&1
    expect "$1: --show names the compiler" grep -q "$2" "$dir/show"
    # The C compiler knows nowhere no better: let only the GPU's look.
    sed 's/+ nowhere/+ IRIS_NOWHERE/' "$dir/bad.c" >"$dir/worse.c"
    "$iriscc" $flags '-DIRIS_NOWHERE=(IRIS_ON_CPU ? 0 : 0)' -c \
        -o "$dir/fine.o" "$dir/worse.c" || failed=1
    printf '#if IRIS_ON_CPU\n#define IRIS_NOWHERE 0\n#endif\n' >"$dir/nowhere.h"
    "$iriscc" $flags -include "$srcdir/include/iris/device.h" \
        -include "$dir/nowhere.h" -c -o "$dir/worse.o" "$dir/worse.c" \
        >"$dir/where" 2>&1 && failed=1
    expect "$1: the line is the file's own" \
        grep -Eq "worse\.c[:(]$line" "$dir/where"
    expect "$1: and what may be missing is said" \
        grep -q "no GPU code of .*worse\.c.* IRIS_DEVICE" "$dir/where"
    expect "$1: half an object is no object" fails test -e "$dir/worse.o"
}

try amd hipcc gfx90a sm_90 gfx1
try nvidia nvcc sm_90 gfx90a sm_12
exit $failed
