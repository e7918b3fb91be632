#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What the README shows is true: its program compiles and runs as it says, its
# settings are those of the library, and its links lead somewhere.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/..
readme=$root/README.md
: "${CC:=cc}" "${CFLAGS=}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The first block marked as C.
awk '/^```c$/ { inside = 1; next }
     inside && /^```$/ { exit }
     inside' "$readme" >"$tmp/hello.c"
[ -s "$tmp/hello.c" ] || { echo "no C program in README.md"; exit 1; }

# Word splitting is meant: flags are many words.
# shellcheck disable=SC2086
$CC $CFLAGS -Wall -Wextra -Werror -I"$PWD/include" -I"$root/include" \
    -o "$tmp/hello" "$tmp/hello.c" -L"$PWD/.libs" -liris \
    -Wl,-rpath,"$PWD/.libs"

for mode in threads processes; do
    for ranks in 2 4; do
        (cd "$tmp" && IRIS_SPAWN=$mode IRIS_NUM_RANKS=$ranks ./hello) |
            sort >"$tmp/output"
        for ((rank = 0; rank < ranks; rank++)); do
            left=$(((rank + ranks - 1) % ranks))
            echo "rank $rank of $ranks: 1024 of 1024 values from rank $left" \
                "are right"
        done | diff - "$tmp/output"
        echo "passed: the program, $ranks ranks, $mode"
    done
done

# The table between the markers is the one the library has.
if [ -x ./iris-info ]; then
    sed -n '/^<!-- settings:/,/^<!-- \/settings -->/p' "$readme" |
        grep '^|' >"$tmp/table"
    ./iris-info --env-markdown | grep '^|' | diff "$tmp/table" - || {
        echo "put the output of iris-info --env-markdown into README.md"
        exit 1
    }
    echo "passed: the table of settings"
fi

# Links to files of the project, in all its documents.
for document in "$readme" "$root"/docs/*.md "$root"/CONTRIBUTING.md; do
    grep -o '](\([^)#:]*\))' "$document" | sed 's/^](//; s/)$//' |
        while read -r target; do
            [ -e "$(dirname "$document")/$target" ] || {
                echo "$document: no such file: $target"
                exit 1
            }
        done
done
echo "passed: links"
