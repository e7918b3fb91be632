#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: gpus waits
#
# scripts/gpu-test probe over the fake HIP runtime with two GPUs: it runs to its
# end, and finds each planted fault, in the direction of the fault only.
set -u
[ -e .libs/libfakehip.so ] || { echo "left out: no fake runtime" && exit 77; }
. "$(dirname "$0")/support/script.sh"
export IRIS_GPU_BUILD=$PWD IRIS_TEST_FAKE_GPUS=2 IRIS_TEST_LOGS=$tmp/logs
export LC_ALL=C
# However busy this machine is, nothing but what is planted comes to a deadline.
export IRIS_TIMEOUT_MS=120000 IRIS_DEVICE_TIMEOUT_MS=60000
unset IRIS_BACKEND IRIS_SIM_DEVICE IRIS_LOG_LEVEL FAKEHIP_FAIL

probe() { # STATUS OPTION...
    local expected=$1 ret
    shift
    "$here/../scripts/gpu-test" probe --built --bytes 1048576 "$@" >"$tmp/out" 2>&1
    ret=$?
    [ $ret = "$expected" ] || fail "probe $* exits with $ret"
}

has() { # PATTERN
    grep -qE -e "$1" "$tmp/out" || fail "no line like: $1"
}

lacks() { # PATTERN
    ! grep -qE -e "$1" "$tmp/out" || fail "a line like: $1"
}

# The document as the expression wants it.
json() { # EXPRESSION: true of the document `d`, and of its runs `r` by name
    command -v python3 >/dev/null || return 0
    python3 -c "import json, sys
d = json.load(open(sys.argv[1]))
r = {run['run']: run['steps'] for run in d['runs']}
sys.exit(not ($1))" "$tmp/logs/probe.json" || fail "the JSON is not so: $1"
}

good='( +ok){9} *$'
probe 0
for run in one-threads one-processes all-threads all-processes; do
    has "^$run-fine$good"
    has "^$run-uncached$good"
    has "^$run-vmem$good"
done
has '^0 +ok *$'
has '^all-threads-fine +0-1  1: [0-9.]+ .* stream: [0-9.]+$'
has '^all is well$'
lacks $'\033'
has '^all-threads-rccl +not available '
json "len(r) == 13 and d['gpus'] == 2 and d['info']['version'] and
    [s['verdict'] for s in r['all-processes-fine']] == ['ok'] * 9 and
    {s['check'] for s in r['all-processes-fine']} == set(
        'context flag data atomics copy streams library tiles bandwidth'.split()) and
    'stream:' in r['one-threads-fine'][8]['text']"

# Memory that HIP does not have: neither good nor bad.
FAKEHIP_FAIL=hipExtMallocWithFlags:1+:801 probe 0 --only all-threads-uncached
has '^all-threads-uncached +not available .*no heap of'
json "r['all-threads-uncached'][0]['verdict'] == 'not available'"
FAKEHIP_FAIL=hipMemGetAllocationGranularity:1+:801 probe 0 --only all-threads-vmem
has '^all-threads-vmem +not available '

FAKEHIP_QUIRKS=no-uncached probe 0 --only all-threads-vmem
has "^all-threads-vmem$good"
has '^all-threads-vmem: note: .*this HIP has no uncached vmem'

# What is wrong between processes leaves threads as they were.
FAKEHIP_FAIL=hipIpcOpenMemHandle:1+:1 probe 1 --only all-threads-fine \
    --only all-processes-fine
has "^all-threads-fine$good"
has '^all-processes-fine( +failed){9} *$'
has '^all-processes-fine: start: failed: .*is not mapped'
has '^0 +failed *$'
has '^1 failed$'

# All together do not start, but each two of them do.
FAKEHIP_FAIL=hipIpcOpenMemHandle:2+:1 IRIS_TEST_FAKE_GPUS=3 probe 1 \
    --only all-processes-fine
has '^all-processes-fine( +ok){9} +\(all together: failed\)$'
has '^all-processes-fine: start: failed: '
has '^1 +\. +ok *$'
json "[(s['first'], s['second']) for s in r['all-processes-fine']
    if s['check'] == 'flag'] == [(0, 1), (1, 2)]"

FAKEHIP_QUIRKS=wrong-memory probe 1 --only all-threads-fine \
    --only all-processes-fine
has "^all-threads-fine$good"
has '^all-processes-fine: start: failed: .*is other memory'

IRIS_TEST_FAKE_GPUS=3 FAKEHIP_NO_PEER=0-2 probe 1 \
    --only all-threads-fine
has '^all-threads-fine +no access 1/3 '
has '^0 +ok +no access *$'
has '^1 +\. +ok *$'

FAKEHIP_TORN_COPIES=1 probe 1 --only all-processes-fine
has '^all-processes-fine +ok +ok +ok .* wrong '
has ': copy 0-1: wrong: rank [01], word [0-9]+ of 4096: .* bytes are wrong; try GPU_MAX_HW'

# The 60th launch of a process never returns: it is ended, and what comes after
# the check is made by another, in which only one check launches so much.
FAKEHIP_FAIL=hipModuleLaunchKernel:60:hang probe 1 --limit 4 \
    --only all-threads-fine
has '^all-threads-fine( +ok){6} +hung +ok +ok *$'
has '^all-threads-fine: library of all: hung: '
has '^1 failed$'
grep -q hipModuleLaunchKernel "$tmp"/logs/probe-all-threads-fine.0.stacks ||
    grep -q 'wchan: ' "$tmp"/logs/probe-all-threads-fine.0.stacks ||
    fail "no stacks"

# A copy that overtakes the fill before it; streams whose kernels take turns.
FAKEHIP_QUIRKS=copy-before-fill probe 1 --only all-threads-fine
has '^all-threads-fine( +ok){5} +wrong( +ok){3} *$'
has ': streams of all: wrong: rank [01] found .* wrong, .* a fill and the copy behind it'
FAKEHIP_QUIRKS=kernel-behind-kernel GPU_MAX_HW_QUEUES=4 IRIS_DEVICE_TIMEOUT_MS=2000 \
    probe 1 --only all-threads-fine
has '^all-threads-fine( +ok){5} +wrong '
has ': kernels of 2 other streams do not pass one of stream [0-2] .*; try GPU_MAX_HW_QUEUES=24'
FAKEHIP_QUIRKS=kernel-behind-kernel GPU_MAX_HW_QUEUES=24 probe 0 --only all-threads-fine
has "^all-threads-fine$good"

# After another library has begun: with HIP's own number of queues, and in those of
# the program.
mkdir "$tmp/lib"
# shellcheck disable=SC2086 # The compiler may be a command with options.
$CC -shared -fPIC -pthread -o "$tmp/lib/librccl.so.1" "$here/fake_rccl.c" || fail "no fake RCCL"
LD_LIBRARY_PATH=$tmp/lib FAKEHIP_QUIRKS=none probe 0 --only all-threads-rccl
has "^all-threads-rccl$good"
has '^all-threads-rccl: note: .* HIP began before Iris, with 4 hardware queues'
LD_LIBRARY_PATH=$tmp/lib FAKEHIP_QUIRKS=kernel-behind-kernel IRIS_DEVICE_TIMEOUT_MS=2000 \
    probe 1 --only all-threads-rccl
has ': kernels of 2 other streams do not pass one of stream '
LD_LIBRARY_PATH=$tmp/lib FAKEHIP_QUIRKS=kernel-behind-kernel GPU_MAX_HW_QUEUES=24 \
    DEBUG_HIP_DYNAMIC_QUEUES=0 probe 0 --only all-threads-rccl
has "^all-threads-rccl$good"
lacks 'HIP began'

# Rates, by a program that does nothing but tell them.
mkdir "$tmp/stub"
cat >"$tmp/stub/iris" <<'EOF'
#!/bin/bash
if [ "$1" = info ]; then
    echo '{"name": "hip", "num_devices": 3, "devices": ["'"$gpu"'"]}'
else
    printf 'bandwidth\t%s\t%s\tok\t1\tstream:%s 1:2.5 4:%s\n' $rates
    echo end
fi
EOF
chmod +x "$tmp/stub/iris"
rates() { # GPU RATE...: two GPUs, what a stream copies, and what kernels store
    gpu=$1 rates="${*:2}" env -u FAKEHIP_DEVICES tools/probe-all "$tmp/stub/iris" \
        "" "" "" "$tmp/rates.json" "$tmp/rates" "" all-threads-fine >"$tmp/out" 2>&1 ||
        fail "rates $*: status $?"
}
rates Other 0 1 47 46 0 2 45 46 1 2 40 39
has '^all is well$'
rates Other 0 1 47 46 0 2 20 19 1 2 40 39
has '^all-threads-fine: bandwidth 0-2: slow: 20 GB/s, but GPUs 0-1 have 47; try '
has '^1 slow$'
lacks '^all is well$'
rates Other 0 1 5 46 0 2 45 4 1 2 40 39
has ': bandwidth 0-1: slow: a copy of a stream has 5 GB/s, kernels 46; try '
has ': bandwidth 0-2: slow: a copy of a stream has 45 GB/s, kernels 4; try '
rates Other 0 1 20 21 0 2 20 21 1 2 20 21
has '^all is well$'
rates 'AMD Instinct MI300X' 0 1 20 21 0 2 20 21 1 2 20 21
has ': bandwidth 1-2: slow: 21 GB/s of a link that has 48; try '
has '^3 slow$'
grep -q '"verdict": "slow"' "$tmp/rates.json" || fail "no slow verdict in JSON"

probe 2 --only nonsense
probe 2 --gpus none
has 'pass a whole number'
probe 0 --help
has '^usage: '
probe 1 --gpus 9
has '9, but this machine has 2'
mkdir "$tmp/none"
IRIS_GPU_BUILD=$tmp/none probe 1
has 'has no iris;'
IRIS_TEST_FAKE_GPUS=0 PATH=/usr/bin:/bin probe 77
has 'skipped, since'

[ $failed = 0 ] && echo "passed"
[ $failed = 0 ]
