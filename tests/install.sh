#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build first
#
# A program that knows only pkg-config can use an installed library, and
# uninstalling it leaves no files.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL
here=$(cd "$(dirname "$0")" && pwd)
: "${MAKE:=make}" "${PKG_CONFIG:=pkg-config}" "${CC:=cc}" "${CFLAGS=}"
compiler=${CC%% -*} compiler=${compiler##* } # without options, and without ccache
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

bin=$dest$(folder exec_prefix)/bin

# Writes programs in LANGUAGE, one for each installed header: N.LANGUAGE includes it twice
# and has the address of every function that it declares. both_1 and both_2 have those of
# all headers, which they include in opposite orders. Headers of other targets are left out.
write_programs() { # LANGUAGE COMPILER...
    local language=$1 to=$tmp/$1
    shift
    mkdir -p "$to"
    echo 'int main(void) { return 0; }' >"$to/main.$language"
    (cd "$includedir" && find iris -name '*.h' ! -name 'target_*' &&
        { [ "$language" = c ] || ls iris/*.hpp; }) | sort >"$to/headers"
    sed 's/.*/#include <&>/' "$to/headers" | tee "$to/both_1.$language" |
        tac >"$to/both_2.$language"
    "$@" -E "$to/both_1.$language" |
        awk -v root="$includedir/" -f "$here/declared.awk" >"$to/declared"
    awk -F'\t' -v to="$to/" -v language="$language" '
        function put(program, type) {
            sub(/use/, "use_" program "_" FNR, type)
            print "extern " type ";\n" type " = " $3 ";" >>(to program "." language)
        }
        FNR == NR {
            number[$1] = FNR
            print "#include <" $1 ">\n#include <" $1 ">" >>(to FNR "." language)
        }
        FNR < NR && NF == 4 && $1 in number {
            put(number[$1], $4)
            put("both_1", $4)
            put("both_2", $4)
        }' "$to/headers" "$to/declared"
    cut -f3 "$to/declared" | LC_ALL=C sort -u >"$to/names"
    sed -n '/global:/,/local:/s/^ *\([a-z0-9_]*\);.*/\1/p' "$here/../src/libiris.map" |
        LC_ALL=C comm -23 - "$to/names" | sed "s/^/no $language program uses /" >"$tmp/log"
    [ ! -s "$tmp/log" ] || { cat "$tmp/log"; exit 1; }
}

# Compiles and links those programs: link_programs LANGUAGE LIBRARIES COMPILER... The short
# run links them as one.
link_programs() {
    local language=$1 libraries=$2 from=$tmp/$1 number=0 header
    shift 2
    "$@" -c -o "$from/main.o" "$from/main.$language" || exit 1
    seq "$(wc -l <"$from/headers")" | xargs -P 2 -I{} "$@" -c -o "$from/{}.o" "$from/{}.$language" ||
        { echo "the program of a header does not compile by $*"; exit 1; }
    if [ "${IRIS_TEST_LONG:-0}" = 0 ]; then
        # shellcheck disable=SC2086 # libraries are many words
        "$@" -o "$from/program" "$from"/[0-9]*.o "$from/main.o" $libraries ||
            { echo "the programs of headers do not link by $*"; exit 1; }
        : >"$from/headers"
    fi
    while read -r header; do
        number=$((number + 1))
        # shellcheck disable=SC2086
        "$@" -o "$from/program" "$from/$number.o" "$from/main.o" $libraries ||
            { echo "$header: its program does not build by $*"; exit 1; }
    done <"$from/headers"
    link_both "$language" "$libraries" "$@"
}

# The same with the program of two files.
link_both() {
    local language=$1 libraries=$2 from=$tmp/$1
    shift 2
    # shellcheck disable=SC2086
    "$@" -o "$from/program" "$from"/{both_1,both_2,main}."$language" $libraries &&
        "$from/program" ||
        { echo "the program of two files that use all headers does not build by $*"; exit 1; }
}

# C and C++ compilers of one kind, and the libraries to link.
all_programs() { # CC CXX C-STANDARD C++-STANDARD LIBRARIES
    local cc="$1 $flags" cxx="$2 $flags"
    # shellcheck disable=SC2086
    link_programs c "$5" $cc "-std=$3"
    ! $2 --version >/dev/null 2>&1 || link_programs cpp "$5" $cxx "-std=$4"
    IRISCC_CC=$cc link_both c "$5" "$bin/iriscc"
    echo "passed: a program for each header, $1 $3, $2 $4: $5"
}

# A program is linked with the archive where there is one, and in the long run with both.
flags="$CFLAGS -O0 -fvisibility=hidden -Wall -Wextra -Wundef -Wpedantic -Werror $(query --cflags)"
cxx=${CXX:-$(sed -E 's/\bclang\b/clang++/; s/\bgcc\b/g++/; s/\bcc$/c++/' <<<"$CC")}
# shellcheck disable=SC2086
write_programs c $CC $flags
# shellcheck disable=SC2086
! $cxx --version >/dev/null 2>&1 || write_programs cpp $cxx $flags
libraries=$(query --libs)
if [ -e "$libdir/libiris.a" ]; then
    mkdir "$tmp/static" && ln -s "$libdir/libiris.a" "$tmp/static"
    libraries="-L$tmp/static $(query --static --libs)"
    # shellcheck disable=SC2086
    $CC $flags -o "$tmp/consumer_static" "$here/install_consumer.c" $libraries
    ! readelf -d "$tmp/consumer_static" | grep 'NEEDED.*libiris' || exit 1
    (cd "$tmp" && IRIS_SPAWN=processes ./consumer_static)
fi
all_programs "$CC" "$cxx" c11 c++17 "$libraries"
if [ "${IRIS_TEST_LONG:-0}" != 0 ]; then
    all_programs "$CC" "$cxx" gnu2x c++20 "$(query --libs)"
    ! command -v clang++ >/dev/null || all_programs clang clang++ c11 c++17 "$libraries"
fi

for tool in iris iriscc; do
    "$bin/$tool" --help >/dev/null || { echo "$tool is not installed"; exit 1; }
    [ -n "$(find "$dest" -name "$tool.1")" ] || { echo "no $tool.1"; exit 1; }
done
[ -n "$(find "$dest" -path '*/bash-completion/completions/iris')" ] || { echo "no completion"; exit 1; }
IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu "$bin/iris" info >/dev/null
(cd "$tmp" && "$bin/iris" run -n 2 ./consumer)
for page in iris.7 iris_all_reduce.3 iris_signal_set.3; do
    [ -n "$(find "$dest" -name "$page")" ] || { echo "no $page"; exit 1; }
done

# A pointer whose type does not say how much to allocate.
for bad in 'float x; float *p = &x' 'struct unknown *x, **p = &x' 'int p = 0'; do
    echo "#include <iris/heap.h>
int f(iris_t *iris); int f(iris_t *iris) {
$bad; return iris_malloc_typed(iris, 1, p); }" >"$tmp/bad.c"
    # shellcheck disable=SC2046
    ! $CC -std=gnu11 $(query --cflags) -fsyntax-only "$tmp/bad.c" \
        2>/dev/null || { echo "compiles: $bad"; exit 1; }
done

# Documents lie so that the README's links lead somewhere.
docdir=$dest$(folder docdir)
{ grep -o '](\([^)#:]*\))' "$docdir/README.md" | sed 's/^](//; s/)$//'
  cd "$here/.." && ls docs/*.md docs/guide/* docs/lab/* examples/*.[ch] examples/calls/*; } | sort -u >"$tmp/documents"
while read -r document; do
    [ -e "$docdir/$document" ] || { echo "not installed: $document"; exit 1; }
done <"$tmp/documents"

# The Debian packages divide all files among them, but for libtool's, and for the archive and
# the module for a cblas, which they are built without.
unpacked() { # PATTERN...: the files that no pattern has
    (cd "$prefix" && find . ! -type d | sed 's|^\./|usr/|') |
        grep -vE '\.la$|/libiris\.a$|iris_cblas' | while read -r file; do
        for pattern; do
            # shellcheck disable=SC2053 # patterns
            [[ $file != $pattern && $file != $pattern/* ]] || continue 2
        done
        echo "in no Debian package: $file"
    done
}
mapfile -t patterns < <(sed 's|/lib/\*/|/lib*/|' "$here"/../packaging/debian/*.install)
missing=$(unpacked "${patterns[@]}")
[ -z "$missing" ] || { echo "$missing"; exit 1; }
[ -n "$(unpacked usr/bin)" ] || { echo "not seen: a package without files"; exit 1; }

# An example, by iriscc and by the C compiler alone.
cp -r "$docdir/examples" "$tmp/examples"
for example in "$tmp"/examples/[0-9]*.c; do
    grep -q "$(basename "$example" .c)" "$tmp/examples/Makefile" ||
        { echo "examples/Makefile lacks $example"; exit 1; }
done
flags="$CFLAGS $(query --cflags)"
"$MAKE" -s -C "$tmp/examples" 01_store IRISCC="$bin/iriscc" CFLAGS="$flags" \
    LDLIBS="$(query --libs)"
(cd "$tmp" && examples/01_store >/dev/null)
"$MAKE" -s -C "$tmp/examples" 07_message_passing_put IRISCC="$CC" \
    CFLAGS="$flags" LDLIBS="$(query --libs)"
(cd "$tmp" && examples/07_message_passing_put >/dev/null)

# A CMake project finds the package, which is not where configure said.
use_cmake() { # PREFIX
    rm -rf "$tmp/cmake" && cmake -S "$here/cmake" -B "$tmp/cmake" \
        -DCONSUMER="$here" -DCMAKE_PREFIX_PATH="$1" -DCMAKE_C_COMPILER="$compiler" \
        -DCMAKE_C_FLAGS="$CFLAGS" >"$tmp/log" 2>&1 &&
        cmake --build "$tmp/cmake" --verbose >>"$tmp/log" 2>&1
}
if command -v cmake >/dev/null; then
    use_cmake "$prefix" || { cat "$tmp/log"; exit 1; }
    grep -q "exec '$bin/iriscc'" "$tmp/log" ||
        { echo "iris_add_executable() does not use iriscc"; exit 1; }
    for program in plain kernels; do
        (cd "$tmp" && IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu "cmake/$program")
    done
    # Another version is refused, this one is not.
    for version in 0.1 0 0.2 1 0.0; do
        mkdir -p "$tmp/version$version"
        printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(p LANGUAGES NONE)' \
            "find_package(iris $version REQUIRED)" >"$tmp/version$version/CMakeLists.txt"
        found=no
        ! (cd "$tmp/version$version" && cmake -DCMAKE_PREFIX_PATH="$prefix" .) \
            >/dev/null 2>&1 || found=yes
        case $version:$found in
        0.1:yes | 0:yes | [01].[02]:no | 1:no) ;;
        *) echo "find_package(iris $version): found: $found"; exit 1 ;;
        esac
    done
else
    echo "left out: a CMake project, since there is no cmake"
fi

"$MAKE" -s uninstall DESTDIR="$dest" >"$tmp/uninstall.log" 2>&1 ||
    { cat "$tmp/uninstall.log"; exit 1; }
left=$(find "$dest" ! -type d; find "$dest" -name iris)
[ -z "$left" ] || { echo "uninstall left:"; echo "$left"; exit 1; }
