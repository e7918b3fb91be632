#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: gpus
#
# The public headers, the symbol map and the library's exports have the same
# names. A function that a header declares and does not define is exported.
# Lists of folders are meant to split into words.
# shellcheck disable=SC2086
set -u
export LC_ALL=C
srcdir=${srcdir:-.}
. "$(dirname "$0")/support/script.sh"
lib=.libs/libiris.so

# Names that the installed headers of FOLDERS declare and another file has to define: the
# host's calls, and those of device code on a CPU. Headers of other targets are left out,
# and those that need Random123, which only the library includes.
declared() { # FOLDER...
    grep -rL --include='*.h' 'Random123' "$@" | grep -v '/target_[a-z]*\.h$' |
        sed 's/.*/#include "&"/' >"$tmp/all.c"
    # CC may be several words.
    ${CC:-cc} -iquote . -Iinclude -I"$srcdir/include" -E "$tmp/all.c" |
        awk -F'\t' -v root= -f "$here/declared.awk" |
        awk -F'\t' '$2 == "extern" && $1 ~ /(^|\/)(iris|device)\// { print $3 }' | sort -u
}

# Names the map exports, in the order it has them.
mapped() {
    sed -n '/global:/,/local:/s/^ *\([A-Za-z0-9_]*\);.*/\1/p' \
        "$srcdir/src/libiris.map"
}

exported() {
    ${NM:-nm} -D --defined-only "$lib" |
        awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u
}

compare() { # NAME-A FILE-A NAME-B FILE-B
    local only
    only=$(comm -23 "$2" "$4")
    [ -z "$only" ] || { printf "in %s, not in %s:\n%s\n" "$1" "$3" "$only"; bad=1; }
    only=$(comm -13 "$2" "$4")
    [ -z "$only" ] || { printf "in %s, not in %s:\n%s\n" "$3" "$1" "$only"; bad=1; }
}

bad=0
headers="$srcdir/include/iris include/iris/device/"
declared $headers >"$tmp/declared"
mapped >"$tmp/mapped"
exported >"$tmp/exported"
[ -s "$tmp/declared" ] || { echo "found no declarations"; bad=1; }
sort -cu "$tmp/mapped" || bad=1
if grep -n '^iris_i_' "$tmp/mapped"; then
    echo "the map exports internal names"
    bad=1
fi
compare "the headers" "$tmp/declared" "src/libiris.map" "$tmp/mapped"
compare "src/libiris.map" "$tmp/mapped" "$lib" "$tmp/exported"

# A declaration without an export is seen, wherever it is.
mkdir -p "$tmp/iris/device/kernels"
echo 'extern struct planted *iris_cpu_planted(int (*call)(void), int);' \
    >"$tmp/iris/device/kernels/planted.h"
declared $headers "$tmp/iris" | comm -13 "$tmp/declared" - | grep -qx iris_cpu_planted ||
    { echo "not seen: a planted declaration"; bad=1; }
[ $bad = 0 ] && echo "$(wc -l <"$tmp/mapped") symbols, all as declared"
exit $bad
