#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# Checks the README: its program compiles and runs in all the ways that it describes,
# and its links lead to a target.
set -eu -o pipefail
. "$(dirname "$0")/support/script.sh"
readme=$root/README.md
: "${CC:=cc}" "${CFLAGS=}"
export TMPDIR=$tmp # two mpiruns that share a folder get in each other's way

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

# Runs the program in one of the README's ways: way LABEL RANKS COMMAND...
way() {
    local label=$1 ranks=$2 rank left
    shift 2
    (cd "$tmp" && "$@") | sort >"$tmp/output"
    for ((rank = 0; rank < ranks; rank++)); do
        left=$(((rank + ranks - 1) % ranks))
        echo "rank $rank of $ranks: 1024 of 1024 values from rank $left" \
            "are right"
    done | diff - "$tmp/output"
    echo "passed: the program, $ranks ranks, $label"
}

torchrun_like() { # RANKS: the variables that torchrun sets
    local rank pid pids=
    for ((rank = 0; rank < $1; rank++)); do
        RANK=$rank WORLD_SIZE=$1 LOCAL_RANK=$rank MASTER_PORT=$$ ./hello &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid" || return
    done
}

way threads 2 env IRIS_NUM_RANKS=2 ./hello
way threads 4 env IRIS_NUM_RANKS=4 ./hello
way processes 4 env IRIS_SPAWN=processes IRIS_NUM_RANKS=4 ./hello
way "iris run" 4 "$PWD/iris" run -n 4 ./hello
way torchrun 4 torchrun_like 4
if [ -n "${MPIRUN-}" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    way mpirun 4 "$MPIRUN" --oversubscribe -n 4 ./hello
fi

# Links to files of the project, in all its documents.
for document in "$readme" "$root"/docs/*.md "$root"/docs/guide/*.md "$root"/CONTRIBUTING.md; do
    { grep -o '](\([^)#:]*\))' "$document" || :; } | sed 's/^](//; s/)$//' |
        while read -r target; do
            [ -e "$(dirname "$document")/$target" ] || {
                echo "$document: no such file: $target"
                exit 1
            }
        done
done
echo "passed: links"
