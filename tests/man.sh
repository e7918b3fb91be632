#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# Manual pages have the options of --help, iris(7) has the settings of the
# library, every public call has a page, and groff and mandoc find no faults.
set -u
export LC_ALL=C
. "$(dirname "$0")/support/script.sh"
man=$root/man

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
    # shellcheck disable=SC2086 # a command and its subcommand
    if ! ./${tool/-/ } --help >"$tmp/text"; then
        fail "$tool --help fails"
    else
        of_help <"$tmp/text" >"$tmp/help"
        [[ $tool != iris-* ]] || sed -i '/--help$/d; /--usage$/d; /--version$/d' "$tmp/help"
        sed -n '/^\.SH OPTIONS/,/^\.SH EXIT/p' "$page" | of_page >"$tmp/page"
        [ -s "$tmp/help" ] || fail "$tool --help has no options"
        diff "$tmp/help" "$tmp/page" && echo "ok: $tool(1) has the options" ||
            fail "$tool(1) and $tool --help differ"
    fi
done
for tool in $(./iris --help | sed -n '/^Subcommands:/,/^$/s/^  *\([a-z]*\) .*/\1/p'); do
    [ -e "$man/iris-$tool.1" ] || fail "iris $tool has no page"
    grep -q "iris\\\\-$tool (1)" "$man/iris.1" || fail "iris(1) does not name iris-$tool(1)"
done
# Variables of iriscc, too.
for word in $(./iriscc --help | grep -oE '^  IRISCC_[A-Z_]+'); do
    grep -qx "\.B $word" "$man/iriscc.1" || fail "iriscc(1) lacks $word"
done

sed -n '/^\.\\" settings/,/^\.\\" \/settings/p' "$man/iris.7" |
    sed '1d; $d' >"$tmp/settings"
./iris info --env-man | diff "$tmp/settings" - ||
    fail "put the output of iris info --env-man into man/iris.7"

# Calls of the library, without those that the device headers make themselves.
exported() {
    grep -oE '\<iris_[a-z0-9_]+' "$root/src/libiris.map" | grep -v '^iris_cpu_'
}
has_page() { # CALL: its page names and describes it
    local page=$tmp/man3/$1.3
    [ -e "$page" ] || return
    page=$tmp/$(sed -n '1s/^\.so //p' "$page") && [ -f "$page" ] || page=$tmp/man3/$1.3
    grep -q "^[a-z_0-9, ]*\<$1\>.* \\\\- [^ ]" "$page" &&
        sed -n '/^\.SH DESCRIPTION/{n;p}' "$page" | grep -q '[a-z]'
}
"$root/scripts/reference" man "$tmp/man3" || fail "scripts/reference"
"$root/scripts/reference" check || fail "comments of calls lack what is printed above"
for call in $(exported); do
    grep -q "\<$call(\(.*[,;)]\)\?$" "$tmp"/man3/*.3 || fail "no arguments of $call"
done
for call in $(exported) iris_load iris_atomic_min_masked iris_signal_set iris_dev_barrier \
    iris_wg_max; do
    has_page "$call" || fail "no page, or an empty one: $call(3)"
done
grep -q '^\.B IRIS_ERR_NO_MEMORY' "$tmp/man3/iris_malloc.3" || fail "iris_malloc(3): no errors"
for page in "$tmp"/man3/*.3; do
    [ -z "$(sed -n '/^\.BR.* (3)/p' "$page" | awk '{ print $2 }' | while read -r call; do
        [ -e "$tmp/man3/$call.3" ] || echo "$call"; done)" ] || fail "$page: refers to no page"
done

# Prints what groff and mandoc find, if they are installed. The folder is the one that
# ".so man3/..." lines start from. Pages have no date, for the same bytes each time.
lint() { # FOLDER PAGE...
    local folder=$1
    shift
    ! command -v groff >/dev/null || (cd "$folder" && for page in "$@"; do
        groff -man -Tascii -ww "$page" >"$tmp/out"; done)
    ! command -v mandoc >/dev/null || (cd "$folder" && mandoc -Tlint -W warning "$@" |
        grep -vE 'missing date|\.so is fragile')
}
# shellcheck disable=SC2046 # a list of files
wrong=$(lint "$tmp" "$(cd "$man" && pwd)"/*.[17] $(cd "$tmp" && ls man3/*.3) 2>&1)
[ -z "$wrong" ] || { printf '%s\n' "$wrong" && fail "groff or mandoc finds something"; }

# A call whose comment lacks a word, a parameter, a status or an example is found.
mkdir -p "$tmp/root/device" "$tmp/root/examples"
cp -r "$root/include" "$root/scripts" "$root/configure.ac" "$tmp/root"
cp -r "$root/device/core" "$root/device/wg" "$root/device/watch" "$tmp/root/device"
cp -r "$root/examples/calls" "$tmp/root/examples"
header=$tmp/root/include/iris/sync.h
while IFS='|' read -r what change; do
    sed "$change" "$root/include/iris/sync.h" >"$header"
    ! cmp -s "$root/include/iris/sync.h" "$header" || fail "no fault: $what"
    "$tmp/root/scripts/reference" check >"$tmp/found"
    grep -q "$what" "$tmp/found" || fail "not seen: $what"
done <<'EOF'
no @use says: Capture|s/@use blocks; refused/@use blocks/
unknown word: sometimes|s/@use blocks; refused/@use blocks; refused; sometimes/
no @param data|s/@param data/@param date/
does not say what it returns|s/iris_status_t iris_broadcast(/int iris_broadcast(/; s,^/.. Copies,/** - Copies,
does not say which statuses|s/^IRIS_API iris_status_t iris_broadcast(iris_t .iris,/IRIS_API iris_status_t iris_broadcast(/; s/^ .  IRIS_ERR.*//
there is no IRIS_ERR_LOST|s/IRIS_ERR_PEER_LOST    a member/IRIS_ERR_LOST    a member/
no program in examples/calls|s/iris_barrier(/iris_barrier_of_all(/
EOF

# A call without a page, an empty page and a wrong one are found.
! has_page iris_no_such_call || fail "a call that does not exist has a page"
sed -i '/^\.SH DESCRIPTION/,$d' "$tmp/man3/iris_barrier.3"
! has_page iris_barrier || fail "an empty page passes"
printf '.TH X 3\n.SH NAME\nx \\- y\n.XY\n.so man3/none.3\n' >"$tmp/man3/wrong.3"
if { command -v groff || command -v mandoc; } >/dev/null; then
    [ -n "$(lint "$tmp" man3/wrong.3 2>&1)" ] || fail "a wrong page passes"
fi
[ $failed = 0 ] && echo passed
exit $failed
