#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: gpus
#
# scripts/amd-node without an emulator: its message when there is none. And with
# a launcher that only starts programs, over the fake HIP runtime: it runs each
# way of making ranks, and reports failures.
set -u
. "$(dirname "$0")/support/script.sh"
export IRIS_AMD_NODE_BUILD=$PWD IRIS_TEST_LOGS=$tmp/logs LC_ALL=C
unset ROCJITSU IRIS_TEST_SCALE IRIS_TEST_MAX_RANKS

node() { # STATUS OPTION...
    local expected=$1 ret
    shift
    "$root/scripts/amd-node" "$@" >"$tmp/out" 2>&1
    ret=$?
    [ $ret = "$expected" ] || { fail "amd-node $* exits with $ret" && cat "$tmp/out"; }
}

has() { # PATTERN
    grep -qE -e "$1" "$tmp/out" || { fail "no line like: $1" && cat "$tmp/out"; }
}

node 77
has '^amd-node: skipped, ROCJITSU names no folder '
node 2 threads-3
node 0 --help
has '^  bin/rocjitsu +the launcher'

# A folder is looked through before anything is built.
export ROCJITSU=$tmp/node
mkdir -p "$ROCJITSU/bin" "$ROCJITSU/lib" "$ROCJITSU/include/hip"
for file in bin/rocjitsu lib/librocjitsu.so lib/libamdhip64.so \
    lib/libhsa-runtime64.so.1 include/hip/hip_runtime_api.h; do
    node 1
    has "^amd-node: ROCJITSU=.* has no $file; "
    : >"$ROCJITSU/$file"
done
node 1
has 'bin/rocjitsu cannot be executed$'
: >"$ROCJITSU/include/hip/hip_version.h"

[ -e .libs/libfakehip.so ] || { [ $failed = 0 ] && exit 77 || exit 1; }
# The launcher: as many fake GPUs as the node has by its configuration.
cat >"$ROCJITSU/bin/rocjitsu" <<'END'
#!/bin/bash
[ "$1" != --version ] || { echo rocjitsu 0 && exit; }
export FAKEHIP_DEVICES
FAKEHIP_DEVICES=$(sed -n 's/.*"num_gpus": \([0-9]*\).*/\1/p' "$2")
daemon=$3
shift 2
while [ "$1" != -- ]; do shift; done
shift
echo "launched: $FAKEHIP_DEVICES GPUs, $daemon, ${HSA_ENABLE_IPC_MODE_LEGACY-}"
[ -z "${NODE_FAILS-}" ] || [[ $* != *$NODE_FAILS* ]] || exit 3
exec "$@"
END
chmod +x "$ROCJITSU/bin/rocjitsu"
node 0 --built --only iris --only examples/04_atomic_add threads-2 \
    processes-4 one-4
has '^threads-2 +iris +ok '
has '^\| `examples/04_atomic_add` \| ok \| ok \| ok \|$'
has '^\| `iris` \| ok \|  \|  \|$'
for launch in 'threads-2-04*2 GPUs, --, ' \
    'processes-4-04*4 GPUs, --daemon, 1' 'one-4-04*1 GPUs, --, '; do
    grep -qx "launched: ${launch#*\*}" "$tmp"/logs/${launch%%\**}*.log ||
        fail "the launcher was not called like: $launch"
done
for rank in 0 1 2 3; do # 4 ranks in each way but the first
    grep -q "rank  $rank" "$tmp"/logs/one-4-04*.log || fail "one-4: no rank $rank"
done

NODE_FAILS=04_atomic node 1 --built --only examples/04_atomic_add threads-2
has '^threads-2 +examples/04_atomic_add +FAILED '
has '; 1 failed$'

# A test program's cell says how many of its tests passed.
if [ -x tests/device/run ] || "$MAKE" tests/device/run >"$tmp/out" 2>&1; then
    IRIS_TEST_SCALE=1000 node 0 --built --only tests/device/test_signal threads-2 \
        processes-2
    has '^\| `tests/device/test_signal` \| 4 ok \| 4 ok \|$'
fi
[ $failed = 0 ]
