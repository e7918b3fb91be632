#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# iriscc: compiles C that is not C++ for GPUs, too, and makes one object for
# both. After an error it leaves no files and prints the place.
set -u
. "$(dirname "$0")/support/script.sh"
iriscc=$build/iriscc

# In a build with the fake HIP runtime kernels stand in for their GPU code.
if grep -q choose_fake "$iriscc"; then
    CC=${CC%% -I*}
    export IRISCC_CC=${CC:-cc} IRISCC_PLATFORM=''
fi
[ -x "$iriscc" ] || { echo "no iriscc in $PWD" && exit 77; }
mkdir -p "$tmp/include/iris" && ln -s "$root/device" "$tmp/include/iris/device"
flags="-I$tmp/include -I$root/include"

# Everything that C has and C++ has not, around a kernel.
cat >"$tmp/both.c" <<'EOF'
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
sed 's/twice(i)/twice(i) + nowhere/' "$tmp/both.c" >"$tmp/bad.c"

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
    (cd "$tmp/empty" && "${command[@]}") >"$tmp/log" 2>&1 &&
        { echo "FAILED: $what: it passes" && failed=1 && return; }
    lines=$(grep -c '^iriscc: ' "$tmp/log")
    for word; do
        [ "$lines" = 1 ] && grep -q -- "^iriscc: .*$word" "$tmp/log" &&
            [ -z "$(ls "$tmp/empty")" ] && continue
        echo "FAILED: $what: no line with '$word', or files are left"
        cat "$tmp/log" && ls "$tmp/empty"
        failed=1
        return
    done
    echo "ok: $what"
}

mkdir "$tmp/empty"
check "help" bash -c "$iriscc --help | grep -q 'usage: iriscc'"
# Every option that the script itself takes, and every variable.
for word in $(sed -n 's/^    \(--[a-z-]*\).*) .*/\1/p; s/.*\(IRISCC_[A-Z_]*\).*/\1/p' \
    "$iriscc" | sort -u); do
    check "help has $word" bash -c "'$iriscc' --help | grep -q -- '^  $word'"
done
for file in x.cpp x.cc x.cxx x.C; do
    touch "$tmp/$file"
    says "$file is refused" "$iriscc" -c "$tmp/$file" -- "$file: that is C++" \
        "compiles C" "compile the rest with c++"
    says "$file is refused when linking" "$iriscc" -o prog "$tmp/both.c" \
        "$tmp/$file" -- "$file: that is C++"
done
says "x.cu is refused" "$iriscc" -c x.cu -- "x.cu: that is CUDA" "with nvcc"
says "x.hip is refused" "$iriscc" x.hip -- "x.hip: that is HIP" "with hipcc"
says "-x c++ is refused" "$iriscc" -x c++ -c x -- "-x c++: that is another"
says "-c without a source" "$iriscc" -c x.o -- "no file to compile" "\*\.c"
says "an option without its argument" "$iriscc" -c "$tmp/both.c" -o -- \
    "-o: its argument is missing"
says "an empty --offload-arch" "$iriscc" --offload-arch= -c "$tmp/both.c" -- \
    "names no GPU" "--offload-arch=ARCH"
says "--offload-arch without a GPU compiler" env IRISCC_GPU_CC= "$iriscc" \
    --offload-arch=sm_90 -c "$tmp/both.c" -- "--offload-arch=sm_90" \
    "no GPU compiler" "leave the option out"
says "a platform that is none" env IRISCC_GPU_CC=true IRISCC_ARCHS=sm_90 \
    IRISCC_PLATFORM=other "$iriscc" -c "$tmp/both.c" -- \
    "IRISCC_PLATFORM is 'other'" "amd or nvidia"
check "the preprocessor gets Iris's headers" bash -c \
    "'$iriscc' --show -E '$tmp/both.c' | grep -q -- ' -I'"
check "--cpu-only compiles" \
    "$iriscc" --cpu-only $flags -c -o "$tmp/cpu.o" "$tmp/both.c"
check "--cpu-only adds no image" no_image "$tmp/cpu.o"

try() { # PLATFORM COMPILER ARCH OTHERS-ARCH UNKNOWN-ARCH
    export IRISCC_PLATFORM=$1 IRISCC_GPU_CC=$2 IRISCC_ARCHS=$3
    if ! command -v "$2" >/dev/null; then
        echo "skipped: $1, no $2"
        return
    fi
    check "$1: compiles C" \
        "$iriscc" $flags -O2 -c -o "$tmp/$1.o" "$tmp/both.c"
    check "$1: the object has an image" image "$tmp/$1.o"
    check "$1: the image is the object's own" bash -c \
        "! nm '$tmp/$1.o' | grep -q ' [A-Z] iris_i_gpu_image'"
    check "$1: objects alone are linked" bash -c \
        "'$iriscc' --show '$tmp/$1.o' -o prog | grep -q -- '-liris .*-o prog'"
    "$iriscc" $flags -flto -fPIC -c -o "$tmp/lto.o" "$tmp/both.c" &&
        ${CC:-cc} -flto -shared -o "$tmp/lto.so" "$tmp/lto.o" || failed=1
    check "$1: -flto keeps the image" image "$tmp/lto.so"
    check "$1: an error in a kernel is an error" \
        fails "$iriscc" $flags -c -o "$tmp/bad.o" "$tmp/bad.c"
    sed 's/^/    /' "$tmp/log" | head -n 2
    check "$1: and leaves no object" fails test -e "$tmp/bad.o"
    says "$1: the other vendor's GPU" "$iriscc" "--offload-arch=$4" -c \
        "$tmp/both.c" -- "--offload-arch=$4" "such as $3"
    # Of the right form, and no GPU.
    says "$1: a GPU that the compiler does not know" "$iriscc" $flags \
        "--offload-arch=$3,$5" -c "$tmp/both.c" -- \
        "no GPU code of .*both.c: $2 cannot compile for $5"
    ! grep -q IRIS_DEVICE "$tmp/log" || { echo "FAILED: $1: a wrong hint" && failed=1; }
    line=$(grep -n nowhere "$tmp/bad.c" | cut -d: -f1)
    IRISCC_CC=true "$iriscc" --show $flags -c "$tmp/bad.c" >"$tmp/show" 2>&1
    check "$1: --show names the compiler" grep -q "$2" "$tmp/show"
    # The C compiler knows nowhere no better: let only the GPU's look.
    sed 's/+ nowhere/+ IRIS_NOWHERE/' "$tmp/bad.c" >"$tmp/worse.c"
    "$iriscc" $flags '-DIRIS_NOWHERE=(IRIS_ON_CPU ? 0 : 0)' -c \
        -o "$tmp/fine.o" "$tmp/worse.c" || failed=1
    printf '#if IRIS_ON_CPU\n#define IRIS_NOWHERE 0\n#endif\n' >"$tmp/nowhere.h"
    "$iriscc" $flags -include "$root/include/iris/device.h" \
        -include "$tmp/nowhere.h" -c -o "$tmp/worse.o" "$tmp/worse.c" \
        >"$tmp/where" 2>&1 && failed=1
    check "$1: the line is the file's own" \
        grep -Eq "worse\.c[:(]$line" "$tmp/where"
    check "$1: and what may be missing is said" \
        grep -q "no GPU code of .*worse\.c.* IRIS_DEVICE" "$tmp/where"
    check "$1: half an object is no object" fails test -e "$tmp/worse.o"
}

try amd hipcc gfx90a sm_90 gfx1
try nvidia nvcc sm_90 gfx90a sm_12
exit $failed
