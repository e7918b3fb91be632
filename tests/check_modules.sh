#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# Checks that files are modules, by the symbols of their objects: there is no
# cycle of calls between files, each function that others call is in a header of
# its folder. Prints file:line and the fault.
# check_modules_faults.sh tests this. --arrows [FILE] prints which file calls
# which, and by which functions.
# Lists of folders are meant to split into words.
# shellcheck disable=SC2086
set -u
export LC_ALL=C
srcdir=${srcdir:-.}
here=$(cd "$(dirname "$0")" && pwd)
# The folders that have sources, from low to high; then those that are no layer yet.
present=$(cd "$srcdir" && find src -name '*.c' -printf '%h\n' | sort -u)
layers=$(bash "$here/check_structure.sh" --layers | sed 's|^|src/|' | grep -xF "$present")
folders="$layers $(grep -vxF "$layers" <<<"$present")"
# Folders that not every build has.
optional=" src/backend_hip "
# Pairs of files that may call each other, three at most: FILE FILE reason.
pairs=""
# Tables that the header of a lower folder's list declares: FILE SYMBOL reason.
listed="src/backend/registry.c iris_i_sim_type: the list of backends is below them"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# folder/file.c symbol D (defines it) or U (uses it), for the objects of a
# folder: libtool leaves the shared ones in .libs, with the library's name ahead.
symbols() { # FOLDER
    local object file objects=()
    for object in "$1"/.libs/*.o; do
        file=${object##*_la-}
        file=${file##*/}
        # Others are of an earlier build.
        [ ! -e "$srcdir/$1/${file%.o}.c" ] || objects+=("$object")
    done
    [ ${#objects[@]} = 0 ] || ${NM:-nm} -A -P -g "${objects[@]}" | awk -v folder="$1" '
        {
            file = $1
            sub(/.*\//, "", file)
            sub(/.*_la-/, "", file)
            sub(/\.o:$/, ".c", file)
        }
        $3 ~ /^[TDBRVWCU]$/ { print folder "/" file, $2, $3 == "U" ? "U" : "D" }'
}

# file file symbol: the first uses what the second defines. In modules of the
# library a file stands in for lower ones, which own the symbol.
uses() {
    awk '
        NR == FNR { if ($3 == "D" && !($2 in owner)) owner[$2] = $1; next }
        $3 == "U" && ($2 in owner) && owner[$2] != $1 { print $1, owner[$2], $2 }
    ' "$tmp/symbols" "$tmp/symbols" | sort
}

# Depth first: a call of a file that is open closes a cycle.
cycles() {
    awk '
        function visit(file,    i, next_file, j, path) {
            state[file] = "open"
            stack[++depth] = file
            for (i = 1; i <= count[file]; i++) {
                next_file = target[file, i]
                if (state[next_file] == "open") {
                    path = ""
                    for (j = depth; stack[j] != next_file; j--)
                        path = stack[j] " " path
                    print next_file ":1: a cycle of calls: " next_file " " \
                        path "by " symbol[file, i]
                } else if (state[next_file] == "") {
                    visit(next_file)
                }
            }
            depth--
            state[file] = "done"
        }
        FILENAME == ARGV[1] { allowed[$1, $2] = allowed[$2, $1] = 1; next }
        ($1, $2) in allowed || seen[$1, $2]++ { next }
        {
            files[$1]
            target[$1, ++count[$1]] = $2
            symbol[$1, count[$1]] = $3
        }
        END {
            for (file in files)
                if (state[file] == "")
                    visit(file)
        }' "$tmp/pairs" "$tmp/uses" | sort
}

# What other folders use of a file is in a header of its folder that is not
# internal.h; what its own folder uses is in any header of the folder. The rest is
# public. Nobody includes another folder's internal.h, except tests.
headers() {
    awk 'NR == FNR { sub(/:$/, "", $2); skip[$1, $2]; next }
        !(($1, $3) in skip) {
            from = $1
            to = $2
            sub(/[/][^/]*$/, "", from)
            sub(/[/][^/]*$/, "", to)
            print $2, $3, from == to ? "own" : "other"
        }' "$tmp/listed" "$tmp/uses" |
        sort -u >"$tmp/called"
    awk -v srcdir="$srcdir" '
        function read_words(header, owner,    line, words, i) {
            while ((getline line <header) > 0) {
                for (i = split(line, words, /[^A-Za-z0-9_]+/); i > 0; i--)
                    has[owner, words[i]]
            }
            close(header)
        }
        BEGIN {
            for (; ARGC > 2; ARGC--) {
                owner = "public"
                header = ARGV[ARGC - 1]
                if (index(header, srcdir "/src/") == 1) {
                    owner = substr(header, length(srcdir) + 2)
                    sub(/[/][^/]*$/, "", owner)
                    owner = owner (header ~ /internal\.h$/ ? " own" : " other")
                }
                read_words(header, owner)
            }
        }
        {
            folder = $1
            sub(/[/][^/]*$/, "", folder)
        }
        !(("public", $2) in has) && !((folder " other", $2) in has) &&
            !($3 == "own" && (folder " own", $2) in has) {
            print $1 ":1: no header of " folder " for " \
                ($3 == "own" ? "its files" : "other folders") " has " $2
        }' "$tmp/called" "$srcdir"/include/iris/*.h "$srcdir"/device/*.h "$srcdir"/device/*/*.h \
        "$srcdir"/src/*/*.h
    (cd "$srcdir" && grep -rnsE '#include "[a-z_]+/internal[.]h"' src tools bench) |
        awk -F: '{
            split($1, path, "/")
            match($3, /"[a-z_]+/)
            if (path[1] "/" path[2] != "src/" substr($3, RSTART + 1, RLENGTH - 1))
                print $1 ":" $2 ": includes internal.h of another folder"
        }'
}

bad=0
for folder in $folders; do
    symbols "$folder" >"$tmp/folder"
    if [ ! -s "$tmp/folder" ] && [ "${optional#* "$folder" }" = "$optional" ]; then
        echo "no objects in $folder"
        bad=1
    fi
    cat "$tmp/folder" >>"$tmp/symbols"
done
echo "$pairs" >"$tmp/pairs"
echo "$listed" >"$tmp/listed"
uses >"$tmp/uses"
if [ "${1-}" = --arrows ]; then
    awk '{ head = $1 " calls " $2 ":" }
        head != last { printf "%s%s", NR == 1 ? "" : "\n", head }
        { printf " %s", $3; last = head }
        END { print "" }' "$tmp/uses" | grep -F "${2-}"
    exit
fi
{ cycles && headers; } >"$tmp/found"
cat "$tmp/found"
[ ! -s "$tmp/found" ] || bad=1
[ "$(grep -c . "$tmp/pairs")" -le 3 ] || { echo "more than three pairs"; bad=1; }
[ $bad = 0 ] && echo "$(cut -d' ' -f1,2 "$tmp/uses" | sort -u | wc -l) arrows" \
    "between $(cut -d' ' -f1 "$tmp/symbols" | sort -u | wc -l) files, no cycle"
exit $bad
