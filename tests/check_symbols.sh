#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The public headers, the symbol map and the library's exports have the same
# names.
set -u
export LC_ALL=C
srcdir=${srcdir:-.}
lib=.libs/libiris.so
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Names declared with default visibility: one declaration at a time, without
# comments and directives, the word before the first parenthesis.
declared() {
    cat "$srcdir"/include/iris/*.h "$srcdir"/device/cpu.h |
        awk '
        { code = code strip($0) "\n" }
        function strip(line) {
            if (in_directive || (!in_comment && line ~ /^[ \t]*#/)) {
                in_directive = line ~ /\\$/
                return ""
            }
            while (1) {
                if (in_comment) {
                    if (!(end = index(line, "*/")))
                        return ""
                    line = substr(line, end + 2)
                    in_comment = 0
                }
                if (!(start = index(line, "/*")))
                    return line
                tail = substr(line, start + 2)
                line = substr(line, 1, start - 1)
                if (!(end = index(tail, "*/"))) {
                    in_comment = 1
                    return line
                }
                line = line " " substr(tail, end + 2)
            }
        }
        END {
            count = split(code, pieces, /[;{}]/)
            for (i = 1; i <= count; i++) {
                piece = pieces[i]
                if (piece !~ /IRIS_API|visibility\("default"\)/)
                    continue
                gsub(/__attribute__ *\(\([^;]*"default"[^)]*\)[^)]*\)\)/, "",
                     piece)
                sub(/\(.*/, "", piece)
                gsub(/[^A-Za-z0-9_]+/, " ", piece)
                sub(/ $/, "", piece)
                sub(/.* /, "", piece)
                print piece
            }
        }' | sort -u
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
declared >"$tmp/declared"
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
[ $bad = 0 ] && echo "$(wc -l <"$tmp/mapped") symbols, all as declared"
exit $bad
