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

refuses() { # ARGUMENT TEXT [VARIABLE=VALUE...]
    if (cd "$folder" && "$here/../configure" -q "$1" "${@:3}") \
        >"$folder/out" 2>&1; then
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

# Without a compiler for GPUs, whether this machine has one or not.
for backend in hip all; do
    refuses --with-backend=$backend "hipcc (AMD) or nvcc (NVIDIA)" \
        ac_cv_path_HIPCC= ac_cv_path_NVCC=
done
refuses --with-backend=cuda "sim, hip, all"
refuses --with-mpi=/nowhere "/nowhere"
refuses --with-random123=/nowhere "/nowhere"
refuses --without-random123 "makes random numbers"
refuses --with-mpi=no "install librandom123-dev" \
    ac_cv_header_Random123_philox_h=no
[ $failed = 0 ]
