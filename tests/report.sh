#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: gpus waits
#
# scripts/gpu-test report over the fake HIP runtime. The unpacked archive has
# the stacks and another run of programs that hung, and planted names are
# removed. If the archive cannot be written, no files are left.
set -u
[ -e .libs/libfakehip.so ] || { echo "left out: no fake runtime" && exit 77; }
. "$(dirname "$0")/support/script.sh"
export IRIS_GPU_BUILD=$PWD IRIS_TEST_FAKE_GPUS=2 IRIS_TEST_LOGS=$tmp/logs
export LC_ALL=C TMPDIR=$tmp/temporary
export USER=planted-user HOSTNAME=planted-host HOME=/home/planted-user
unset IRIS_BACKEND IRIS_SIM_DEVICE IRIS_LOG_LEVEL FAKEHIP_FAIL
gpu_test=$here/../scripts/gpu-test

runs() { # STATUS ARGUMENT...
    local expected=$1 ret
    shift
    "$gpu_test" "$@" >"$tmp/out" 2>&1
    ret=$?
    [ $ret = "$expected" ] || fail "gpu-test $* exits with $ret"
}

has() { # FILE PATTERN: of the archive
    grep -qE -e "$2" "$tmp/iris-report/$1" || fail "$1 has no line like: $2"
}

lacks() { # PATTERN
    ! grep -rniE -e "$1" "$tmp/iris-report" >"$tmp/out" || fail "the archive has: $1"
}

nothing_left() {
    [ -z "$(ls -A "$TMPDIR")" ] || fail "left in the temporary folder: $(ls "$TMPDIR")"
    ! compgen -G "$tmp/*.part" >/dev/null || fail "left: $(ls "$tmp"/*.part)"
}

mkdir "$tmp/temporary" "$tmp/logs"
echo "planted-user@planted-host.example.org:/home/someone/x 10.20.30.40 fe80::1:2" \
    "00:11:22:aa:bb:cc Serial Number: 4711abc GPU-0123456789abcdef planted_host" \
    "planted-user" >"$tmp/logs/planted.log"

# A machine's files.
mkdir -p "$tmp/sys/amdgpu/parameters" "$tmp/nodes/4/io_links/0" "$tmp/proc/77/fd"
echo 1 >"$tmp/sys/amdgpu/parameters/noretry"
printf '%s\n' "type 11" "node_from 4" "node_to 5" "weight 15" "min_bandwidth 50000" \
    "max_bandwidth 64000" "flags 1" >"$tmp/nodes/4/io_links/0/properties"
ln -s /dev/kfd "$tmp/proc/77/fd/3"
echo trainer >"$tmp/proc/77/comm"
export IRIS_TEST_MODULES=$tmp/sys IRIS_TEST_TOPOLOGY=$tmp/nodes IRIS_TEST_PROCESSES=$tmp/proc

# A kernel's launch that never returns, in the suite and in the probe.
export IRIS_TEST_LIMIT=1
FAKEHIP_FAIL=hipModuleLaunchKernel:1:hang runs 1 bench
grep -q 'FAILED (124' "$tmp/out" || fail "bench did not hang"
FAKEHIP_FAIL=hipModuleLaunchKernel:20:hang runs 1 probe --built --bytes 1048576 \
    --only all-threads-vmem --limit 1
FAKEHIP_FAIL=hipModuleLaunchKernel:20:hang HIP_PLANTED=planted-host \
    OMPI_MCA_some_uri=planted-host OTHER=secret runs 0 report \
    --output "$tmp/report.tar.gz"
grep -q '^written: ' "$tmp/out" || fail "does not say where the archive is"
nothing_left
tar -C "$tmp" -xzf "$tmp/report.tar.gz" || fail "no archive"
tar -tvzf "$tmp/report.tar.gz" | grep -v ' 0/0 ' && fail "the archive has owners"

has README '^  Iris +iris [0-9]+\.'
has README '^  HIP, running .*HIP 7\.14'
has README '^  1  Fake Instinct'
has README '^all-threads-vmem: [a-z]+ 0-1: hung: '
has README '^  bench$'
grep -A 1 '^failed (status' "$tmp/iris-report/README" | grep -q '^(none)$' ||
    fail "an empty list has no word for it"
has logs/results.tsv '^bench	124	.*iris bench'
for file in logs/bench.stacks logs/probe-all-threads-vmem.0.stacks rerun/bench.stacks; do
    has $file '^=== process '
    has $file '^  comm: iris'
done
! command -v gdb >/dev/null ||
    has logs/bench.stacks 'hipModuleLaunchKernel|injected|ptrace'
has rerun/probe.txt '^all-threads-vmem .* hung '
has driver.txt '^amdgpu/parameters/noretry = 1$'
has driver.txt '^ +1 trainer$'
has topology.txt '^4 > 5: type 11, weight 15, 50000 to 64000 MB/s, flags 1, sdma $'
has machine.txt '^descriptors of this shell: [0-9]+, limit ([0-9]+|unlimited), at most '
has machine.txt '^/proc/sys/fs/file-nr: [0-9]'
has environment.txt '^HIP_PLANTED=HOST$'
has logs/planted.log '^USER@HOST:/home/USER/x ADDRESS ADDRESS ADDRESS Serial Number: SERIAL'
lacks 'planted-|4711abc|someone|10\.20\.30|0123456789abcdef|OTHER='
case $(uname -n) in
localhost | ?) ;;
*) lacks "(^|[^a-z0-9])$(uname -n | sed 's/[.]/\\./g')($|[^a-z0-9])" ;;
esac
if command -v python3 >/dev/null; then
    python3 -m json.tool "$tmp/iris-report/probe.json" >/dev/null ||
        fail "probe.json is none"
fi

# It cannot be written, or there is no space.
runs 1 report --no-rerun --output "$tmp/none/report.tar.gz"
grep -q 'cannot write .*none/report' "$tmp/out" || fail "no message of the folder"
nothing_left
(
    trap '' XFSZ
    ulimit -f 4 # KiB of any file
    "$gpu_test" report --no-rerun --output "$tmp/full.tar.gz" >"$tmp/small"
    echo $? >>"$tmp/small"
) 2>"$tmp/out"
grep -q 'no space for the report' "$tmp/out" || fail "no message of the space"
[ "$(tail -n 1 "$tmp/small")" = 1 ] && [ ! -e "$tmp/full.tar.gz" ] ||
    fail "half a report"
nothing_left
runs 2 report --nonsense
runs 0 report --help

[ $failed = 0 ] && echo "passed"
[ $failed = 0 ]
