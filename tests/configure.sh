#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources first
#
# configure refuses wrong options, and says why and what to do.
set -u
. "$(dirname "$0")/support/script.sh"
# A source folder that is itself configured refuses for that reason.
[ ! -e "$root/config.status" ] || exit 77

# What the runs before found out is taken over, but for what is tried here.
configure() { # ARGUMENT...
    [ ! -e cache ] || sed -i '/^ac_cv_\(env_\|path_[HMN]\|header_\(hip\|Random\)\|have_decl_hip\)/d' cache
    "$root/configure" -q --cache-file=cache "$@"
}

refuses() { # ARGUMENT TEXT [VARIABLE=VALUE...]
    if (cd "$tmp" && configure "$1" "${@:3}") \
        >"$tmp/out" 2>&1; then
        echo "FAILED: configure $1 succeeded"
        failed=1
    elif ! grep -q -- "$2" "$tmp/out"; then
        echo "FAILED: configure $1 does not say \"$2\":"
        tail -n 5 "$tmp/out"
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
# A ROCm in a folder of its own, whose hipcc knows some GPUs.
rocm() { # FOLDER VERSION-OF-HEADERS VERSION-OF-HIPCC GPU...
    mkdir -p "$tmp/$1/include/hip" "$tmp/$1/bin" "$tmp/$1/lib"
    printf '#define HIP_VERSION_MAJOR %d\n#define HIP_VERSION_MINOR %d\n' \
        "${2%.*}" "${2#*.}" >"$tmp/$1/include/hip/hip_version.h"
    echo 'typedef int hipDeviceAttribute_t;' \
        >"$tmp/$1/include/hip/hip_runtime_api.h"
    cat >"$tmp/$1/bin/hipcc" <<END
#!/bin/sh
[ "\$*" != --version ] || { echo "HIP version: $3.123-0" && exit 0; }
for word; do
    case " ${*:4} " in
    *" \${word#--offload-arch=} "*) exit 0 ;;
    esac
done
echo "error: unknown GPU" >&2
exit 1
END
    chmod +x "$tmp/$1/bin/hipcc"
}

accepts() { # TEXT VARIABLE=VALUE... ARGUMENT...
    if (cd "$tmp" && unset ROCM_PATH && export "${2?}" && configure \
        --with-backend=hip --with-hip-platform=amd "${@:3}") \
        >"$tmp/out" 2>&1 && grep -q -- "$1" "$tmp/config.h"; then
        echo "passed: configure with ${2%%=*} ${*:3}"
    else
        echo "FAILED: configure ${*:2} has no \"$1\":"
        tail -n 5 "$tmp/out"
        failed=1
    fi
}

rocm rocm-7.2 7.2 7.2 gfx942 gfx950
rocm mixed 5.2 7.2 gfx942
rocm blind 7.2 7.2 gfx1201
export HIPCC="" NVCC=""
amd="--with-hip-platform=amd"
accepts "amd: gfx942,gfx950, $tmp/rocm-7.2/bin/hipcc" \
    ROCM_PATH="$tmp/rocm-7.2"
accepts "amd: gfx942, $tmp/rocm-7.2/bin/hipcc" PATH="$tmp/rocm-7.2/bin:$PATH" \
    --with-gpu-arch=gfx942
refuses --with-backend=hip "headers are of HIP 5.2, but $tmp/mixed/bin/hipcc is of 7.2" \
    $amd --with-rocm="$tmp/mixed"
refuses --with-backend=hip "does not compile for gfx90a, gfx942 or gfx950: error: unknown GPU" \
    $amd --with-rocm="$tmp/blind"
refuses --with-backend=hip "does not compile for gfx942,gfx90a" \
    $amd --with-rocm="$tmp/rocm-7.2" --with-gpu-arch=gfx942,gfx90a
refuses --with-backend=hip "ROCM_PATH=/nowhere: no include/hip/hip_version.h" \
    $amd ROCM_PATH=/nowhere HIPCC="$tmp/rocm-7.2/bin/hipcc"
unset HIPCC NVCC
refuses --with-backend=cuda "sim, hip, all"
refuses --with-mpi=/nowhere "/nowhere"
refuses --with-random123=/nowhere "/nowhere"
refuses --without-random123 "makes random numbers"
refuses --with-mpi=no "install librandom123-dev" \
    ac_cv_header_Random123_philox_h=no
[ $failed = 0 ]
