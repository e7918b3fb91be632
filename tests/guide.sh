#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# Checks the sessions in docs/guide/. A block behind "<!-- file NAME -->" is that file.
# Each "$ COMMAND" of a console block runs in the same folder, and prints the lines below
# it, in any order. "..." stands for any text, and a line "..." for any lines.
set -u
export LC_ALL=C
. "$(dirname "$0")/support/script.sh"
guide=$root/docs/guide
build=$PWD
: "${MPIRUN=}" "${CC:=cc}" "${CFLAGS=}"
# Sanitizers print lines of their own; the rest of the suite runs under them.
[[ $CC$CFLAGS != *-fsanitize* ]] || exit 77
for variable in $(compgen -e IRIS_); do
    unset "$variable"
done
export IRIS_MODULE_DIR=$build/.libs IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_HEAP_BASES_FILES=0 TMPDIR=$tmp
export PYTHONPATH=$root/python IRIS_C_LIBRARY=$build/.libs/libiris.so

# The programs that the pages use, as if Iris were installed.
mkdir "$tmp/bin"
printf '#!/bin/sh\nexec %s "$@"\n' "$build/iris" >"$tmp/bin/iris"
flags="-I$build/include -I$root/include -L$build/.libs -Wl,-rpath,$build/.libs"
printf '#!/bin/sh\nexec %s %s "$@"\n' "$build/iriscc" "$flags" >"$tmp/bin/iriscc"
# Without this folder in PATH, since the compiler may be called cc, too.
printf '#!/bin/sh\nPATH="%s" exec %s "$@"\n' "$PATH" "$CC $CFLAGS" >"$tmp/bin/cc"
printf '#!/bin/sh\nexec %s --oversubscribe "$@"\n' "$(command -v "$MPIRUN")" >"$tmp/bin/mpirun"
echo "echo $flags -liris" >"$tmp/bin/pkg-config"
chmod +x "$tmp"/bin/*
PATH=$tmp/bin:$PATH

# A page's steps, one in each file of FOLDER: "file NAME" or "run COMMAND", and its lines.
steps() { # PAGE FOLDER
    awk -v folder="$2" '
        function step(line) {
            if (path != "")
                close(path)
            path = sprintf("%s/%03d", folder, ++n)
            print line >path
        }
        /^<!-- file [^ ]* -->$/ { name = $3; next }
        /^```/ && inside == "" && name != "" { step("file " name); name = ""; inside = "file"; next }
        /^```console$/ { inside = "console"; next }
        /^```/ { inside = inside == "" ? "other" : ""; next }
        inside == "console" && /^\$ / { step("run " substr($0, 3)); next }
        inside == "console" || inside == "file" { print >path }' "$1"
}

# Whether each line of FOUND is one that WANTED has, and the other way round.
same() { # WANTED FOUND
    awk '
        function pattern(text) {
            gsub(/[][\\.*^$+?(){}|]/, "\\\\&", text)
            gsub(/\\\.\\\.\\\./, ".*", text)
            return "^" text "$"
        }
        FILENAME == ARGV[1] && $0 == "..." { any = 1; next }
        FILENAME == ARGV[1] { want[++n] = pattern($0); next }
        {
            for (i = 1; i <= n; i++)
                if (!(i in seen) && $0 ~ want[i]) {
                    seen[i] = 1
                    next
                }
            if (!any) {
                print "not on the page: " $0
                bad = 1
            }
        }
        END {
            for (i = 1; i <= n; i++)
                if (!(i in seen)) {
                    print "not printed: " want[i]
                    bad = 1
                }
            exit bad
        }' "$1" "$2"
}

check_page() { # PAGE: 0, 77 for a tool that is missing, 1
    local step kind rest folder
    folder=$(mktemp -d) && mkdir "$folder/steps" "$folder/work"
    steps "$1" "$folder/steps"
    for step in "$folder"/steps/*; do
        [ -e "$step" ] || { echo "${1##*/}: has no program" && return 1; }
        read -r kind rest <"$step"
        sed 1d "$step" >"$folder/wanted"
        case $kind$rest in
        file*) cp "$folder/wanted" "$folder/work/$rest" && continue ;;
        *mpirun*) [ -n "$MPIRUN" ] || continue ;;
        *python3*) python3 -c 'import numpy' 2>/dev/null || continue ;;
        esac
        (cd "$folder/work" && timeout 120 bash -c "$rest") >"$folder/found" 2>&1
        same "$folder/wanted" "$folder/found" && continue
        echo "${1##*/}: $rest"
        cat "$folder/found"
        return 1
    done
}

pages=0
[ $# -gt 0 ] || set -- "$guide"/*.md
for page; do
    case $page in */index.md) continue ;; esac
    pages=$((pages + 1))
    if check_page "$page" >"$tmp/log" 2>&1; then
        echo "passed: ${page##*/}"
    else
        cat "$tmp/log"
        failed=1
    fi
done

# Another line of output, a program that does not compile, and one that prints less.
page=$guide/01-first-program.md
fault() { # WHAT SED
    sed "$2" "$page" >"$tmp/fault.md"
    cmp -s "$page" "$tmp/fault.md" && echo "no fault: $1" && failed=1
    check_page "$tmp/fault.md" >/dev/null 2>&1 && echo "not seen: $1" && failed=1
}
fault "another output" 's/^rank 0 .*/rank 0 is somewhere else/'
fault "a wrong program" 's/iris_spawn(/iris_spwn(/'
fault "a program that prints nothing" 's/printf("rank/(void)("rank/'
[ $failed = 0 ] && echo "passed: $pages pages"
exit $failed
