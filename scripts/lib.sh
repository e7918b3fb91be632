# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Functions for the scripts of this folder: installing packages, building out of
# tree, finding GPUs, and running ranks with a time limit.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)
apt_log=/dev/null # where apt's output goes; scripts set it

say() {
    printf '%s\n' "$*"
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Is what a Debian package brings here, from that package or another source?
have_package() {
    case $1 in
    libc6-dev) [ -e /usr/include/stdio.h ] || [ ! -x "$(command -v dpkg)" ] ;;
    autoconf) command -v autoreconf ;;
    libtool) command -v libtoolize ;;
    libopenmpi-dev) command -v mpicc && mpicc -showme:link ;;
    openmpi-bin) command -v mpirun ;;
    libamdhip64-dev) [ -e /usr/include/hip/hip_runtime.h ] ;;
    libclang-rt-*-dev)
        echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
            clang -fsanitize=fuzzer,address -x c -o /dev/null - ;;
    clang-format-14) command -v clang-format-14 ||
        clang-format --version | grep ' 14\.' ;;
    abigail-tools) command -v abidiff ;;
    gcc-aarch64-linux-gnu) command -v aarch64-linux-gnu-gcc ;;
    libc6-dev-arm64-cross) [ -e /usr/aarch64-linux-gnu/include/stdio.h ] ;;
    qemu-user) command -v qemu-aarch64 ;;
    imagemagick) command -v convert ;;
    python3-*) # Debian's own Python has it, whichever python3 is first
        /usr/bin/python3 -c "import ${1#python3-}" ;;
    libcmocka-dev) pkg-config --exists 'cmocka >= 1.1.5' ;;
    libdlpack-dev)
        echo '#include <dlpack/dlpack.h>' | cc -fsyntax-only -x c - ;;
    librandom123-dev)
        echo '#include <Random123/philox.h>' | cc -fsyntax-only -x c - ;;
    libopenblas-dev) echo "#include <cblas.h>" | cc -fsyntax-only -x c - ;;
    libucx-dev) echo "#include <ucp/api/ucp.h>" | cc -fsyntax-only -x c - ;;
    zlib1g-dev) echo "#include <zlib.h>" | cc -fsyntax-only -x c - ;;
    *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

# The package with the sanitizers and the fuzzer of this system's clang.
clang_runtime() {
    local version
    version=$(clang -dumpversion 2>/dev/null)
    echo "libclang-rt-$(echo "${version:-14}" | cut -d. -f1)-dev"
}

# Installs those of the packages that are not here.
need_packages() {
    local package missing=
    for package; do
        have_package "$package" || missing="$missing $package"
    done
    missing=${missing# }
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null ||
        die "missing: $missing (names of Debian packages). This system has no" \
            "apt-get; install what corresponds, then run this again."
    local sudo=
    [ "$(id -u)" = 0 ] || sudo=$(command -v sudo) ||
        die "missing: $missing. Neither root nor sudo is at hand; have an" \
            "administrator run: apt-get install $missing"
    say "installing: $missing"
    local apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q"
    local install="$apt install -y --no-install-recommends $missing"
    # Word splitting is meant. Lists of packages may be absent or old.
    # shellcheck disable=SC2086
    $install >"$apt_log" 2>&1 ||
        { $apt update && $install; } >>"$apt_log" 2>&1 || {
        tail -n 20 "$apt_log" >&2
        die "apt-get could not install: $missing (see $apt_log)"
    }
    for package in $missing; do
        have_package "$package" ||
            die "installed $package, but what it should bring is not there"
    done
}

# Makes the configure script where it is missing or older than its sources.
bootstrap() {
    [ -x "$root/configure" ] && [ -e "$root/Makefile.in" ] &&
        [ ! "$root/configure.ac" -nt "$root/configure" ] &&
        [ ! "$root/Makefile.am" -nt "$root/Makefile.in" ] && return 0
    (cd "$root" && autoreconf -i)
}

# The phases of one compiler share what configure finds out. GPU headers and compilers
# are looked for again: each platform has its own.
share_configure() {
    rm -f "$build"/configure-*.cache
    cat >"$build/config.site" <<EOF
    if [ "\$cache_file" = /dev/null ]; then
        cache_file=$build/configure-\${CC:-cc}.cache
        [ ! -e "\$cache_file" ] || sed -i "\$cache_file" \\
            -e '/^ac_cv_\(env_\|path_[HN]\|header_\(hip\|cu\)\|have_decl_hip\)/d'
    fi
EOF
    export CONFIG_SITE=${CONFIG_SITE-$build/config.site}
}

# Configures (once) and builds in FOLDER, all or $build_what: build_in FOLDER
# CONFIGURE-ARGUMENT...
build_in() {
    local folder=$1
    shift
    mkdir -p "$folder" && bootstrap || return 1
    (
        cd "$folder" || exit 1
        if [ ! -e Makefile ] || [ "$(cat .configured 2>/dev/null)" != "$*" ]; then
            "$root/configure" "$@" && printf '%s\n' "$*" >.configured || exit 1
        fi
        # shellcheck disable=SC2086 # a list
        make -j"$jobs" ${build_what-}
    )
}

# Open MPI refuses root and more ranks than cores unless told otherwise.
mpi_environment() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1
}

# How many tests came out so, by a log of tests/run; of ranks that are processes,
# each says it.
tests_that() { # OK|SKIPPED LOG
    local outcome='^ok [0-9]+ - [^#]+$'
    [ "$1" = OK ] || outcome='^ok [0-9]+ - .* # SKIP.*$'
    grep -aoE "^\[ +$1 +\] [a-z_A-Z0-9]+\$|$outcome" "$2" | sort -u | wc -l
}

# How many GPUs there are, of which kind, and what configure needs for them:
# $gpus, $platform, $gpu_options. (A GPU that hangs
# may hold up whoever asks.) Tests say that
# there are $IRIS_TEST_FAKE_GPUS of the fake runtime.
# shellcheck disable=SC2034 # for the scripts that call it
find_gpus() {
    platform=fake
    gpu_options="--with-backend=hip --with-hip-platform=fake"
    gpus=${IRIS_TEST_FAKE_GPUS:-0}
    if [ "$gpus" != 0 ]; then
        export FAKEHIP_DEVICES=$gpus
        return
    fi
    # ROCm's programs, wherever it is.
    [ -z "${ROCM_PATH-}" ] || PATH=$ROCM_PATH/bin:$PATH
    platform=nvidia
    gpus=$(timeout -k 5 60 nvidia-smi -L 2>/dev/null | grep -c '^GPU')
    if [ "$gpus" = 0 ]; then
        platform=amd
        gpus=$(timeout -k 5 60 rocminfo 2>/dev/null | grep -c 'Name: *gfx')
    fi
    gpu_options="--with-backend=hip --with-hip-platform=$platform"
    [ $platform != amd ] || [ -z "${ROCM_PATH-}" ] ||
        gpu_options="$gpu_options --with-rocm=$ROCM_PATH"
}

# Where what is for GPUs is built, and its logs: $build, $logs.
# shellcheck disable=SC2034 # for the scripts that call it
gpu_folders() {
    export PATH=$PATH:/usr/local/cuda/bin:/opt/rocm/bin
    build=${IRIS_GPU_BUILD:-$root/build/gpu}
    [[ $build = /* ]] || build=$PWD/$build
    logs=${IRIS_TEST_LOGS:-$build/logs}
}

# Runs a command for SECONDS at most: bounded SECONDS STACKS COMMAND... Of one
# that takes longer, what its threads are doing is written to the file STACKS;
# then it is ended, and the status is 124.
# shellcheck disable=SC2064 # the traps mean the processes of now
bounded() {
    local limit=$1 stacks=$2 pid watch ret i
    shift 2
    rm -f "$stacks"
    timeout -k 10 $((limit + 120)) "$@" &
    pid=$!
    {
        for ((i = 0; i < limit; i++)); do
            sleep 1
            kill -0 $pid || exit 0
        done
        "$root/scripts/stacks" $pid >"$stacks"
        kill -s ALRM $pid # to timeout, its time is up
    } >/dev/null 2>&1 &
    watch=$!
    # What runs in the background does not hear of Ctrl-C by itself.
    trap "kill $pid $watch 2>/dev/null; exit 130" INT TERM
    wait $pid 2>/dev/null
    ret=$?
    trap - INT TERM
    kill $watch 2>/dev/null
    wait $watch 2>/dev/null
    return $ret
}
