#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Manual pages have the options that --help has, iris(7) the settings of the
# library, and groff finds nothing wrong with them.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
man=$here/../man
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

# The options at the beginning of lines, as "-j, --json", of a help text; and of
# a page.
of_help() {
    grep -oE '^ +(-[A-Za-z], )?--?[A-Za-z][a-z-]*' | sed 's/^ *//' | sort
}
of_page() {
    sed -n '/^\.TP/{n;s/^\.B //p}' |
        sed 's/\\-/-/g; s/=*\\f[A-Z].*//; s/ *$//' | sort
}

for page in "$man"/*.1; do
    tool=$(basename "$page" .1)
    if [ ! -x "./$tool" ]; then
        fail "$page: no such tool"
    elif ! "./$tool" --help >"$tmp/text"; then
        fail "$tool --help fails"
    else
        of_help <"$tmp/text" >"$tmp/help"
        sed -n '/^\.SH OPTIONS/,/^\.SH EXIT/p' "$page" | of_page >"$tmp/page"
        [ -s "$tmp/help" ] || fail "$tool --help has no options"
        diff "$tmp/help" "$tmp/page" && echo "ok: $tool(1) has the options" ||
            fail "$tool(1) and $tool --help differ"
    fi
done
for tool in iris-info iris-bench iris-sim iris-top iris-trace iriscc iris-launch-env; do
    [ -e "$man/$tool.1" ] || fail "$tool has no page"
done
# Variables of iriscc, too.
for word in $(./iriscc --help | grep -oE '^  IRISCC_[A-Z_]+'); do
    grep -qx "\.B $word" "$man/iriscc.1" || fail "iriscc(1) lacks $word"
done

sed -n '/^\.\\" settings/,/^\.\\" \/settings/p' "$man/iris.7" |
    sed '1d; $d' >"$tmp/settings"
./iris-info --env-man | diff "$tmp/settings" - ||
    fail "put the output of iris-info --env-man into man/iris.7"

if command -v groff >/dev/null; then
    for page in "$man"/*.[17]; do
        groff -man -Tascii -ww "$page" >"$tmp/out" 2>"$tmp/log" &&
            [ ! -s "$tmp/log" ] || { cat "$tmp/log" && fail "$page"; }
    done
fi
[ $failed = 0 ] && echo passed
exit $failed
