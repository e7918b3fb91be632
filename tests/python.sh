#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build first
#
# The Python package: the wheel of this build, installed by itself, runs its
# example and the tests, with NumPy only and with torch.
set -u
. "$(dirname "$0")/support/script.sh"
iris=$build/iris
: "${MAKE:=make}" "${IRIS_TEST_PYTHON=}"
unset MAKEFLAGS MFLAGS MAKELEVEL

has() { # PYTHON MODULE...
    local python=$1
    shift
    "$python" -c "import $(IFS=,; echo "$*")" 2>/dev/null
}

# Debian's own has what Debian's packages bring, whichever comes first in PATH.
for python in $IRIS_TEST_PYTHON python3 /usr/bin/python3; do
    has "$python" numpy setuptools wheel pip venv && break
    python=
done
[ -n "$python" ] || {
    echo "left out: no Python with numpy, setuptools, wheel, pip and venv"
    exit 77
}

step() { # NAME COMMAND...: its output matters where it fails
    check "$1" timeout -k 10 "${limit:-300}" "${@:2}"
}

step "the wheel is made" "$MAKE" wheel PYTHON="$python" wheel_folder="$tmp"
# Without what Python would fetch from elsewhere: this may run without a network.
step "a virtual environment is made" \
    "$python" -m venv --system-site-packages --without-pip "$tmp/venv"
venv=$tmp/venv/bin/python
# Of a virtual environment's own Python the system is what that was made from.
"$python" -c 'import os, numpy
print(os.path.dirname(os.path.dirname(numpy.__file__)))' >"$tmp/site"
has "$venv" numpy || cp "$tmp/site" "$("$venv" -c 'import sysconfig
print(sysconfig.get_path("purelib"))')/beside.pth"
step "the wheel is installed" "$venv" -m pip --disable-pip-version-check \
    install -q --no-index --no-deps "$tmp"/iris_c-*.whl
[ $failed = 0 ] || exit 1

# The tag is for what is inside: every library that a file needs is glibc's or
# inside, or the wheel is for this kind of machine only.
tag_is_right() {
    local wheel=$1 file other=0
    mkdir "$tmp/inside" && "$python" -m zipfile -e "$wheel" "$tmp/inside" || return
    for name in $(readelf -dW "$tmp/inside/iris_c/lib/libiris.so" |
        sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        case $name in
        libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | ld-linux*) ;;
        *) [ -e "$tmp/inside/iris_c/lib/$name" ] || other=1 ;;
        esac
    done
    case $other$wheel in
    0*manylinux_2_* | 1*-linux_*) ;;
    *) echo "$wheel: needs others: $other" && return 1 ;;
    esac
    for file in "$tmp"/inside/iris_c/lib/{*.so*,blas/*.so.[0-9]}; do
        readelf -VW "$file" | grep -o 'GLIBC_2\.[0-9]*' | sed 's/.*\.//'
    done | sort -n | tail -n 1 >"$tmp/minor"
    [ $other = 1 ] || [[ $wheel = *manylinux_2_$(cat "$tmp/minor")_* ]]
}
if tag_is_right "$tmp"/iris_c-*.whl; then
    echo "passed: the wheel's tag is for what is inside"
else
    echo "FAILED: the wheel's tag is for what is inside"
    failed=$((failed + 1))
fi

# What is found must be the wheel's, wherever this test lies.
unset IRIS_C_LIBRARY PYTHONPATH
export OMP_NUM_THREADS=1 IRIS_HEAP_BASES_FILES=0 IRIS_LOG_LEVEL=warning IRIS_SIM_CUS=2
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu PYTHONDONTWRITEBYTECODE=1
cd "$here/python" || exit 1
"$venv" -c "import iris_c._lib as lib; print(lib.path)" | grep -q "^$tmp/venv/" ||
    { echo "FAILED: the library is not the wheel's"; exit 1; }
step "what is installed is told" "$venv" -m iris_c

ranks() { # ARRAYS RANKS TEST...
    local arrays=$1 count=$2
    shift 2
    step "$*, $count with $arrays${IRIS_NODES:+, $IRIS_NODES nodes}" env IRIS_TEST_ARRAYS="$arrays" \
        "$iris" run -n "$count" "$venv" -m unittest -q "$@"
}

# Products of matrices: by the wheel's own OpenBLAS, or slowly, which is said once.
product='import iris_c
ctx = iris_c.iris(1 << 22, arrays="numpy", log_level="info")
a = ctx.ones((64, 64))
out = ctx.zeros((64, 64))
ctx.ops.matmul_all_reduce(out, a, a)
assert (out == 64 * ctx.get_num_ranks()).all()
print("libraries:", *(line.split()[-1] for line in open("/proc/self/maps") if "iris_cblas" in line))'
multiply() { # VARIABLE=VALUE...
    env "$@" "$iris" run -n 2 "$venv" -c "$product"
}
if [ -e "$tmp/inside/iris_c/lib/iris_cblas.so" ]; then
    check "a product" multiply
    grep -q "$tmp/venv/.*/iris_cblas.so" "$tmp/out"
    verdict "the product is by the wheel's module" $?
    # Another OpenBLAS of this name, which NumPy may have loaded above, does as well.
    ldd "$tmp/inside/iris_c/lib/iris_cblas.so" >"$tmp/out"
    ! grep -E 'blas|gfortran|quadmath' "$tmp/out" |
        grep -qv "=> $tmp/inside/iris_c/lib/"
    verdict "the wheel has OpenBLAS and what it needs" $?
else
    echo "left out: a product by the wheel's OpenBLAS: the build has none"
fi
mkdir "$tmp/empty"
check "a product without a module" multiply IRIS_MODULE_DIR="$tmp/empty"
[ "$(grep -c 'own loop, which is slow: no cblas: .*; \(install OpenBLAS\|build Iris\)' \
    "$tmp/out")" = 1 ]
verdict "a missing module is said once, with its remedy" $?

rank_tests="test_ccl test_context test_lifetime test_ops test_representations test_tensors test_transfer"
# shellcheck disable=SC2086 # a list
{
    ranks numpy 1 $rank_tests test_library
    ranks numpy 2 $rank_tests
    ranks numpy 4 $rank_tests
}
# On two nodes, the operations of which each node has only a part.
sums="test_ccl.Ccl.test_averages_and_scaled_sums test_ccl.Ccl.test_torchs_averages_and_scaled_sums"
two_nodes() { # ARRAYS
    export IRIS_NODES=2
    # shellcheck disable=SC2086 # a list
    ranks "$1" 4 $sums
    unset IRIS_NODES
}
two_nodes numpy
export IRIS_TEST_ARRAYS=numpy
for test in bench end interrupt spawn; do
    step "test_$test" "$venv" -m unittest -q test_$test
done
example=$here/../python/examples/rows.py
# As if torch were not installed.
echo 'raise ImportError("hidden")' >"$tmp/torch.py"
awk '/^<!-- python\/examples\/rows.py -->$/ { found = 1; next }
    /^```/ && found { if (inside) exit; inside = 1; next }
    inside { print }' "$here/../docs/python.md" >"$tmp/copied.py"
step "the program of docs/python.md, as copied" \
    env PYTHONPATH="$tmp" "$venv" "$tmp/copied.py"
step "the example, with NumPy only" env PYTHONPATH="$tmp" "$venv" "$example"
collective=$here/../examples/python/gradients.py
step "the example of collectives, with NumPy only" \
    env PYTHONPATH="$tmp" "$venv" "$collective"

# The backend of torch.distributed, which Debian's torch is too old for, with other
# versions in environments of their own. A long run makes those, of gigabytes, and
# the others take the newest that is there.
: "${IRIS_TEST_TORCH:=${XDG_CACHE_HOME:-$HOME/.cache}/iris-torch}"
torch_is_made() { # VERSION
    local folder=$IRIS_TEST_TORCH/$1 numpy=numpy
    case $1 in 2.[12].*) numpy='numpy<2' ;; esac
    has "$folder/bin/python" torch || {
        "$python" -m venv --clear "$folder" &&
            timeout 1800 "$folder/bin/pip" --disable-pip-version-check install -q \
                "torch==$1" "$numpy"
    }
}
torch_versions="2.1.2 2.9.1 2.15.0"
other_torch() { # VERSION
    local test
    # Each process imports torch, which takes long on a machine at work.
    for test in test_torch_backend test_torch_programs test_triton; do
        IRIS_TEST_ARRAYS=torch PYTHONPATH=$tmp/inside limit=900 step "$test with torch $1" \
            "$IRIS_TEST_TORCH/$1/bin/python" -m unittest -q $test
    done
}
newest=
for version in $torch_versions; do
    [ -z "${IRIS_TEST_LONG:-}" ] || torch_is_made "$version" >&2
    has "$IRIS_TEST_TORCH/$version/bin/python" torch || continue
    newest=$version
    [ -z "${IRIS_TEST_LONG:-}" ] || other_torch "$version"
done
if [ -z "$newest" ]; then
    echo "left out: the backend with torch ${torch_versions##* }: not in $IRIS_TEST_TORCH"
elif [ -z "${IRIS_TEST_LONG:-}" ]; then
    other_torch "$newest"
fi

if has "$venv" torch; then
    ranks torch 2 test_ccl test_lifetime test_ops test_representations test_tensors test_transfer
    ranks torch 4 test_ccl
    two_nodes torch
    export IRIS_TEST_ARRAYS=torch
    for test in process_group torch_backend torch_programs triton; do
        step "test_$test" "$venv" -m unittest -q "test_$test"
    done
    step "the example, with torch" \
        "$iris" run -n 2 "$venv" "$example"
    step "the example of collectives, with torch" \
        "$iris" run -n 2 "$venv" "$collective"
else
    echo "left out: torch is not installed"
fi
[ $failed = 0 ]
