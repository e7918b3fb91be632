# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: MIT
#
# What scripts of programs under the checks begin with, after script.sh.
case "${CFLAGS-} ${CC-}" in
*sanitize*) echo "the checks do not go with a sanitizer" && exit 77 ;;
esac
export LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_SPAWN=threads IRIS_HEAP_BASES_FILES=0

# The programs of tests/check become $tmp/NAME.
compile() { # NAME...
    local name
    for name in "$@"; do
        # shellcheck disable=SC2086 # the compiler may be a command with options
        ${CC:-cc} -std=gnu11 -g -O1 -Iinclude -I"$root/include" -L.libs \
            -o "$tmp/$name" "$root/tests/check/$name.c" -liris || exit 1
    done
}
