# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
#
# What scripts that are tests begin with: the folders of the tests ($here), of the
# tree ($root) and of the build ($build), a folder of their own ($tmp), which goes
# when they end, $failed, and functions that look at the output of commands.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=${here%/*}
build=$PWD
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

fail() { # WHAT
    echo "FAILED: $*"
    [ ! -f "$tmp/out" ] || tail -n 40 "$tmp/out"
    failed=1
}

# Of a command whose output is in $tmp/out and $tmp/err.
verdict() { # LABEL STATUS
    if [ "$2" = 0 ]; then
        echo "passed: $1"
    else
        echo "FAILED ($2): $1"
        tail -qn 40 "$tmp/out" "$tmp/err" 2>/dev/null
        failed=1
    fi
}

check() { # LABEL COMMAND...
    "${@:2}" >"$tmp/out" 2>&1
    verdict "$1" $?
}

# The command exits with STATUS, and its output contains TEXT.
says() { # LABEL STATUS TEXT COMMAND...
    "${@:4}" >"$tmp/out" 2>&1
    [ $? = "$2" ] && grep -qF -- "$3" "$tmp/out"
    verdict "$1, '$3'" $?
}

# Leaves the folder of the build for one of this script's own, without the settings
# of IRIS_ variables but for where to run.
go_apart() {
    local variable
    export TMPDIR=$tmp # two mpiruns that share a folder get in each other's way
    cd "$tmp" || exit 1
    for variable in $(compgen -e IRIS_); do
        case $variable in
        *_BACKEND | *_MODULE_DIR | *_SIM_DEVICE) ;;
        *) unset "$variable" ;;
        esac
    done
}
