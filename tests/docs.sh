#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# Compares pages with the code: links lead to a target, quotations match their
# files, docs/api.md has every call, and docs/architecture.md has every file of
# src/.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
found=$(mktemp)
trap 'rm -f "$found" "$found".*' EXIT

# Relative links in pages, without the part behind '#'.
check_links() {
    local page link
    for page in *.md docs/*.md docs/guide/*.md docs/lab/*.md python/*.md; do
        grep -o '](\([^)#:]*\)\(#[^)]*\)\?)' "$page" |
            sed 's/^](//; s/[#)].*//' | sort -u |
            while read -r link; do
                [ -z "$link" ] || [ -e "$(dirname "$page")/$link" ] ||
                    echo "$page: a link to $link, which does not exist"
            done
    done
}

# A fenced block behind "<!-- PATH -->" is a part of that file. Prints each as
# the file's name, the block's lines, and a line with a form feed.
quotations() { # PAGE
    awk '/^<!-- [^ ]* -->$/ { path = $2; next }
        /^```/ && quoting { print "\f"; quoting = 0; path = ""; next }
        /^```/ && path != "" { print path; quoting = 1; next }
        quoting { print }' "$1"
}

check_quotations() {
    local page line path='' block='' count=0
    for page in docs/*.md; do
        while IFS= read -r line; do
            if [ -z "$path" ]; then
                path=$line
            elif [ "$line" != $'\f' ]; then
                block+=$line$'\n'
            else
                count=$((count + 1))
                [[ $(<"$path")$'\n' == *"$block"* ]] ||
                    echo "$page: not in $path: ${block%%$'\n'*}"
                path='' block=''
            fi
        done < <(quotations "$page")
    done
    [ "$count" -gt 0 ] || echo "docs: no page quotes a file"
}

# The tables of files have each .c, and each header but the two that every folder
# may have; a name anywhere on the page is a file's.
check_architecture() {
    local page=docs/architecture.md name
    for name in src/*/*.[ch]; do
        case $name in
        */internal.h) ;;
        *.h) [ "$(basename "$name" .h)" = "$(basename "$(dirname "$name")")" ] || echo "$name" ;;
        *) echo "$name" ;;
        esac
    done | sort >"$found.src"
    awk -F'`' '/^\| `src\// { folder = $2; next }
        /^$/ { folder = "" }
        folder != "" && /^\| `/ { print folder "/" $2 }' "$page" | sort >"$found.page"
    comm -23 "$found.src" "$found.page" | sed "s|^|$page: no table of files has |"
    comm -13 "$found.src" "$found.page" | sed "s|^|$page: has what is no file: |"
    find ./src ./device ./include ./tools ./bench -name '*.[ch]' >"$found.all"
    # shellcheck disable=SC2016 # backquotes are what is looked for
    grep -oE '[`][a-z_]+(/[a-z_]+)*[.][ch][`]' "$page" | tr -d '`' | sort -u |
        while read -r name; do
            grep -q "/$name$" "$found.all" || echo "$page: there is no $name"
        done
}

# Names in the tables of docs/from-iris.md: the second column's are in the
# headers, the third's in the Python package, and tests use them. A row without a
# counterpart says why.
check_from_iris() {
    local page=docs/from-iris.md name
    column() { awk -F'|' -v at="$1" '/^\|/ { print $at }' "$page"; }
    # shellcheck disable=SC2016 # backquotes are what is looked for
    column 3 | grep -o '`iris_[a-z0-9_]*`' | tr -d '`' | sort -u |
        while read -r name; do
            grep -rqw "$name" include device ||
                echo "$page: no header has $name"
            grep -rqw "$name" tests || echo "$page: no test has $name"
        done
    # shellcheck disable=SC2016
    column 4 | grep -o '`\(ctx\|iris_c\)\.[A-Za-z_.]*`' | tr -d '`' | sort -u |
        while read -r name; do
            case $name in
            ctx.ccl.*) grep -q "def ${name##*.}(" python/iris_c/_ccl.py \
                python/iris_c/_messages.py ;;
            ctx.ops.*) grep -q "def ${name##*.}(" python/iris_c/_ops.py ;;
            iris_c.ccl.*) grep -q "^class ${name##*.}(\?" python/iris_c/ccl.py ;;
            iris_c.ops.*) grep -qE "^(class )?${name##*.}\b" python/iris_c/ops.py ;;
            ctx.*) grep -rqE "def ${name#*.}\(|self\.${name#*.}(:| =)" python/iris_c/_*.py ;;
            iris_c.triton.*) grep -q "^def ${name##*.}(" python/iris_c/triton.py ;;
            *) grep -q "\"${name#*.}\"" python/iris_c/__init__.py ;;
            esac || echo "$page: the Python package has no $name"
            grep -rqw -e "${name##*.}" tests/python ||
                echo "$page: no test in Python has $name"
        done
    awk -F'|' '/^\|/ && $2 !~ /^ - $/ && ($3 ~ /^ - $/ || $4 ~ /^ - $/) && $5 ~ /^ *$/' "$page" |
        sed "s|^|$page: no reason is in the row: |"
}

# docs/api.md has every call of the headers, with the words of its comment.
check_api() {
    sed -n '/^<!-- calls:/,/^<!-- \/calls -->/p' docs/api.md | grep '^[|#]' >"$found.table"
    scripts/reference table | grep '^[|#]' | diff "$found.table" - >"$found.diff" && return
    echo "docs/api.md: put the output of scripts/reference table between its markers"
    cat "$found.diff"
}

check_citation() {
    local version
    version=$(sed -n 's/^AC_INIT(\[iris\], \[\(.*\)\])$/\1/p' configure.ac)
    grep -qx "version: $version" CITATION.cff || echo "CITATION.cff: its version is not $version"
}

{
    check_citation
    check_links
    check_api
    check_from_iris
    check_quotations
    check_architecture
} >"$found"
cat "$found"
[ ! -s "$found" ] || exit 1
echo "docs: nothing to complain about"
