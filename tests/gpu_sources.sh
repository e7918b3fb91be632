#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources first
#
# Checks that a GPU compiler can read every source with kernels, but of the tests a sample
# if the run is short: iriscc cuts out the GPU code of tests, examples and tools, and clang
# parses it. It makes no code; amd_code.sh and device_compile.sh do. It leaves out sources
# that only run on the fake HIP runtime, and those that scripts of tests/check compile for
# CPUs.

srcdir=${srcdir:-$(dirname "$0")/..}
iriscc=$PWD/iriscc
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

. "$srcdir/tests/amd/lib.sh"
command -v clang-19 >/dev/null 2>&1 || {
    echo "skipped: no clang-19"
    exit 77
}

# In place of hipcc: the image, behind -o, is empty.
printf '#!/bin/bash\nalone=(%s)\n' "${amd_alone[*]@Q}" >"$dir/parse"
cat >>"$dir/parse" <<'EOF'
for word; do
    shift
    [ "$word" = --genco ] || set -- "$@" "$word" # hipcc's own
done
clang-19 "${alone[@]}" --cuda-device-only -Werror=c11-extensions \
    -fsyntax-only "$@" || exit 1
while [ "$1" != -o ]; do shift; done
: >"$2"
EOF
# In place of the C compiler, which other tests run: each object is the same one,
# which says that it has kernels.
echo 'extern const char iris_i_gpu_image[] __attribute__((weak));
static const char *image __attribute__((used)) = iris_i_gpu_image;' >"$dir/marked.c"
cc -c -o "$dir/marked.o" "$dir/marked.c" || exit 1
cat >"$dir/mark" <<EOF
#!/bin/sh
while [ "\$1" != -o ]; do shift; done
exec cp "$dir/marked.o" "\$2"
EOF
cat >"$dir/parse_one" <<EOF
#!/bin/sh
object=\$(mktemp "$dir/XXXXXX.o")
IRISCC_CC=$dir/mark IRISCC_GPU_CC=$dir/parse IRISCC_PLATFORM=amd \\
    IRISCC_ARCHS=gfx942 sh "$iriscc" -DIRIS_MODULE_DIR='""' -I. -Iinclude \\
    -I"$srcdir/include" -I"$srcdir/src" -I"$srcdir/tests" -c "\$1" \\
    -o "\$object" >"\$object.log" 2>&1 && exit
echo "\$1: FAILED"
grep -vE ': note: kernel .* has a CPU version only' "\$object.log" | head -n 20
exit 1
EOF
chmod +x "$dir/parse" "$dir/mark" "$dir/parse_one"

# Shows those files, of the lines it reads, that cannot be read.
sources() {
    xargs -P 2 -n 1 "$dir/parse_one"
}

failed=0
# With kernels of their own, or of a header.
{
    grep -lE '^IRIS_KERNEL\(' "$srcdir"/tests/*/*.c "$srcdir"/examples/*.c \
        "$srcdir"/bench/*.c "$srcdir"/tools/*.c
    for header in $(grep -lE '^IRIS_KERNEL\(' "$srcdir"/tests/*/*.h); do
        grep -lF "\"${header#"$srcdir"/tests/}\"" "$srcdir"/tests/*/*.c
    done
} | grep -vE '/(backend_hip|support)/|/check/[^t][a-z]*\.c' | sort -u >"$dir/sources"
# The library's own are in headers of device/.
printf '%s\n' "$srcdir"/src/*/*kernels.c >>"$dir/sources"
awk -v all="${IRIS_TEST_MATRIX-}" 'all == "all" || !/\/tests\// || ++n % 6 == 0' "$dir/sources" |
    sources >"$dir/out" || failed=1
cat "$dir/out"

# The Makefile's list of what iriscc compiles; the C compiler alone would leave
# the GPU code out without a word.
${MAKE:-make} -s print-kernel-objects | tr ' ' '\n' >"$dir/objects"
grep -vE '/tests/(trace/(ending|moves|ranges|reused)|transport/(fault|hosts)_job)\.c' "$dir/sources" >"$dir/compiled" # by trace.sh, faults.sh, hosts.sh
while read -r source; do
    name=${source#"$srcdir"/}
    grep -qxE "${name%.c}\.(lo|o)" "$dir/objects" || {
        echo "$name has kernels, but is not among kernel_objects (Makefile.am)"
        failed=1
    }
done <"$dir/compiled"

# A function of a kernel that is not marked for devices, and is cut away.
cat >"$dir/unmarked.c" <<'EOF'
#include <iris/device.h>
static void helper(int *place)
{
    *place = 1;
}
struct args {
    int *place;
};
IRIS_KERNEL(calls_helper, struct args)
{
    (void)wg;
    helper(args->place);
}
EOF
if echo "$dir/unmarked.c" | sources >"$dir/out"; then
    echo "a kernel that calls a function of the host's: not seen"
    failed=1
fi
[ $failed = 1 ] || echo "all are read, and a function of the host's is not"
exit $failed
