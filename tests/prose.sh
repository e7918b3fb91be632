#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources prose
#
# Finds sentences that are hard to read (prose.awk) in pages, manual pages, and the
# comments of headers and sources. There may be no such sentence, and at most 3 % of all
# sentences may have more than 30 words.
#
#   prose.sh              the test
#   prose.sh --list FILE  the sentences of these files, with the long ones
# Lists of files are meant to split into words.
# shellcheck disable=SC2046
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1

read_files() {
    awk -f tests/prose.awk "$@"
}

all_files() { # pages, headers, comments of all that is no test
    find . \( -path ./tests -o -path ./build -o -path './.*' -o -name '*.cache' \) -prune -o -type f \
        \( -name '*.md' -o -name '*.[17]' -o -name '*.[ch]' -o -name '*.[ch]pp' \) -print |
        sed 's|^\./||' | grep -vE '^[^/]*\.[ch]$' | sort
}

# Each kind of sentence is found, and its plain twin is not.
planted() {
    local kind bad good out folder
    folder=$(mktemp -d) || return 1
    while IFS='|' read -r kind bad good; do
        printf '%s\n' "$bad" >"$folder/bad.md"
        printf '%s\n' "$good" >"$folder/good.md"
        printf '/* %s */\n' "$bad" >"$folder/bad.h"
        # Beside code, and over several lines.
        printf 'f("/*"); /* %s */\n' "${bad// /$'\n * '}" >"$folder/bad.c"
        for out in bad.md bad.h bad.c; do
            read_files "$folder/$out" "$folder/good.md" |
                grep -q "^$folder/$out:[0-9]*: $kind: " ||
                echo "prose.awk: does not find in $out: $bad"
        done
        read_files "$folder/good.md" | grep -v '^words ' &&
            echo "prose.awk: finds in a plain sentence: $good"
    done <<'EOF'
begins|Of one member it is the whole matrix.|A group of one member gets the whole matrix.
what|It unmaps what is mapped on the peers.|It unmaps the peers' mappings.
none|A releasing load is none of these.|No load is a releasing one.
but for|All arguments are equal but for the stream.|All arguments except the stream are equal.
so many|The job pretends to have so many nodes.|The job pretends to have this number of nodes.
the same of|A broadcast does the same of one part.|A broadcast does this for one part.
as X has it|The stride stays as the source has it.|The stride is the source's stride.
who|It names the rank and who waits for it.|It names the rank and those who wait for it.
be it|A caller holds its lock, be it free.|A caller holds its lock, even a free one.
long|One two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three four five six seven eight nine ten one.|One two three four five six seven eight nine ten.
EOF
    rm -rf "$folder"
}

check() {
    planted
    read_files $(all_files) | grep -vE '^words |: long: '
    read_files $(all_files) | awk '/^words / { all += $3; long += $4 }
        END {
            if (all < 10000)
                print "prose.awk: reads only " all + 0 " sentences"
            if (long > 0.03 * all)
                print long " of " all " sentences have more than 30 words"
        }'
}

case ${1-} in
--list) shift && read_files "$@" | grep -v '^words ' ;;
'')
    found=$(check)
    [ -z "$found" ] || { printf '%s\n' "$found" && exit 1; }
    read_files $(all_files) | awk '/^words / { all += $3; long += $4 }
        END { print all " sentences, " long " of more than 30 words" }'
    ;;
*) sed -n 's/^#   //p' "$0" >&2 && exit 2 ;;
esac
