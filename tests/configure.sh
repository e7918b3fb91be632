#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What configure refuses, and that it says why and what to do.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# A source folder that is itself configured refuses for that reason.
[ ! -e "$here/../config.status" ] || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

refuses() { # ARGUMENT TEXT
    if (cd "$folder" && "$here/../configure" -q "$1") >"$folder/out" 2>&1; then
        echo "FAILED: configure $1 succeeded"
        failed=1
    elif ! grep -q -- "$2" "$folder/out"; then
        echo "FAILED: configure $1 does not say \"$2\":"
        tail -n 5 "$folder/out"
        failed=1
    else
        echo "passed: configure $1"
    fi
}

refuses --with-backend=hip "sim"
refuses --with-backend=all "not part of this version"
refuses --with-backend=cuda "sim, hip, all"
refuses --with-mpi=/nowhere "/nowhere"
[ $failed = 0 ]
