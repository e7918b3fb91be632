#!/bin/bash
# SPDX-License-Identifier: MIT
#
# An installed library serves a program that knows only pkg-config, and
# uninstalling it leaves nothing.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL
here=$(cd "$(dirname "$0")" && pwd)
: "${MAKE:=make}" "${PKG_CONFIG:=pkg-config}" "${CC:=cc}" "${CFLAGS=}"
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
dest=$tmp/dest

"$MAKE" -s install DESTDIR="$dest" >"$tmp/install.log" 2>&1 ||
    { cat "$tmp/install.log"; exit 1; }
# Other tests run meanwhile: libtool must not relink what they load, as it does a
# library linked with one that is not installed (-l of it is enough).
! grep 'relinking .*\.la' "$tmp/install.log" || exit 1

# The folders as configured, then the same below DESTDIR.
folder() { # VARIABLE
    PKG_CONFIG_PATH=. "$PKG_CONFIG" --variable="$1" iris
}
prefix=$dest$(folder prefix)
libdir=$dest$(folder libdir)
includedir=$dest$(folder includedir)
export PKG_CONFIG_PATH=$libdir/pkgconfig
query() {
    "$PKG_CONFIG" --define-variable=prefix="$prefix" \
        --define-variable=libdir="$libdir" \
        --define-variable=includedir="$includedir" "$@" iris
}

echo "version $(query --modversion)"
# Word splitting is meant: flags are many words.
# shellcheck disable=SC2046,SC2086
$CC $CFLAGS -Wall -Wextra -Werror $(query --cflags) -o "$tmp/consumer" "$here/install_consumer.c" \
    $(query --libs)
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
(cd "$tmp" && IRIS_SPAWN=threads ./consumer)
(cd "$tmp" && IRIS_SPAWN=processes ./consumer)

# Each installed header stands alone.
(cd "$includedir" && find iris -name '*.h' | sort) | while read -r header; do
    # shellcheck disable=SC2046
    echo "#include <$header>" |
        $CC -std=gnu11 -Wall -Wextra -Wundef -Werror $(query --cflags) \
            -fsyntax-only -x c - || { echo "$header: not usable alone"; exit 1; }
done

for tool in "$dest$(folder exec_prefix)"/bin/*; do
    [ ! -x "$tool" ] || echo "installed $(basename "$tool")"
done
[ ! -x "$dest$(folder exec_prefix)/bin/iris-info" ] ||
    "$dest$(folder exec_prefix)/bin/iris-info" >/dev/null

"$MAKE" -s uninstall DESTDIR="$dest" >"$tmp/uninstall.log" 2>&1 ||
    { cat "$tmp/uninstall.log"; exit 1; }
left=$(find "$dest" ! -type d; find "$includedir" -mindepth 1)
[ -z "$left" ] || { echo "uninstall left:"; echo "$left"; exit 1; }
