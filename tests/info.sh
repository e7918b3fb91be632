#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# iris info: describes the build and the machine, as text and as JSON, names the
# reasons for which a program would fail, and prints the table of settings in
# docs/running.md.
set -u
here=$(cd "$(dirname "$0")" && pwd)
page=$here/../docs/running.md
failed=0
output=$(mktemp)
held=$(mktemp -p /dev/shm) || exit 77
trap 'rm -f "$output" "$held"' EXIT
head -c 4M /dev/zero >"$held" # so that less is free than there is
module=${IRIS_MODULE_DIR-}/iris_hip.so # tests/hip.sh is about it
for variable in $(compgen -e IRIS_); do
    unset "$variable"
done
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu

fail() {
    echo "FAILED: $*"
    cat "$output"
    failed=$((failed + 1))
}

# Runs a subcommand and expects an exit status: info STATUS ARGUMENT...
tool() { # NAME STATUS ARGUMENT...
    local ret
    ./iris "$1" "${@:3}" >"$output" 2>&1
    ret=$?
    [ $ret = "$2" ] || fail "iris $1 ${*:3} exits with $ret"
}
info() { tool info "$@"; }
probe() { tool probe "$1" --bytes $((1 << 20)) --rounds 3; }

# Expects a line that matches.
has() { # PATTERN
    grep -qE "$1" "$output" || fail "no line like: $1"
}

info 0
has '^iris [0-9]+\.[0-9]+\.[0-9]+$'
has '^  sim +can run; in use$'
[ -e "$module" ] || has '^  hip +not in this build$'
has '^  0  .'
has '4 workgroups of a kernel at once'
has '^  MPI +(built in|not in this build)'
has '^  IRIS_HEAP_SIZE +1G +default '

IRIS_HEAP_SIZE=64M IRIS_SIM_CUS=3 info 0
has '^  IRIS_HEAP_SIZE +64M +environment '
has '3 workgroups of a kernel at once'

IRIS_HEAP_SIZE=lots IRIS_LOG_LEVEL=loud info 1
has '^! IRIS_HEAP_SIZE +lots +BAD '
has '^! IRIS_LOG_LEVEL +loud +BAD '
has '^  ! .*IRIS_HEAP_SIZE="lots" does not parse; it takes: a size'
has '^  ! .*IRIS_LOG_LEVEL="loud" does not parse; it takes: debug'

IRIS_BACKEND=nonsense info 1
has '! no backend in use: .*nonsense'
[ -e "$module" ] || {
    IRIS_BACKEND=hip info 1
    has '! no backend in use: .*not in this build'
    IRIS_BACKEND=hip probe 1
    has '^iris probe: IRIS_ERR_BACKEND'
}
IRIS_SIMULATION=1 IRIS_BACKEND=hip info 1
has '! .*IRIS_SIMULATION.*IRIS_BACKEND'

# What a program would fail for, though each value parses.
IRIS_HEAP_SIZE=64K info 1
has '! a heap of 65536 bytes .IRIS_HEAP_SIZE. is too small: with 1 rank it'
IRIS_HEAP_SIZE=1M IRIS_NUM_RANKS=900 IRIS_RANK=3 info 1
has '! a heap of 1048576 bytes .* with 900 ranks it takes at least'
least=$(grep -oE 'at least [0-9]+' "$output" | grep -oE '[0-9]+')
IRIS_HEAP_SIZE=$least IRIS_NUM_RANKS=900 IRIS_RANK=3 info 0
IRIS_HEAP_SIZE=$((least - 1)) IRIS_NUM_RANKS=900 IRIS_RANK=3 info 1
IRIS_RANK=2 IRIS_NUM_RANKS=2 info 1
has '! .*rank 2 is out of range.*IRIS_RANK and IRIS_NUM_RANKS'
IRIS_RANK=1 IRIS_NUM_RANKS=2 info 0
RANK=7 WORLD_SIZE=4 info 1
has '! .*rank 7 is out of range.*WORLD_SIZE'
IRIS_NUM_RANKS=100000 info 1
has '! .*a job of 100000 ranks'

# Values of any length and of any bytes: columns stay apart.
long=/$(printf 'x%.0s' {1..400})
IRIS_MODULE_DIR=$long info 0
grep -A 1 -xE "  IRIS_MODULE_DIR +$long" "$output" | grep -qE '^ +environment +' ||
    fail "a long value and its origin are not apart"
for value in {1..20}; do # one of them ends where the next column begins
    IRIS_JOB_ID=$(printf "y%.0s" $(seq "$value")) info 0
    has '(^| )environment +name the ranks'
    ! grep -qE 'yenvironment' "$output" || fail "columns run together"
done
# A secret is not shown, whether it is valid or too long.
for secret in "the text of a secret" "$(printf 'secret%.0s' {1..100})"; do
    IRIS_JOB_SECRET=$secret ./iris info >"$output" 2>&1
    has '^[ !] IRIS_JOB_SECRET +\(set\) '
    ! grep -qF "${secret:0:12}" "$output" || fail "iris info shows the job's secret"
    IRIS_JOB_SECRET=$secret ./iris info --json >"$output" 2>&1
    ! grep -qF "${secret:0:12}" "$output" || fail "iris info --json shows the job's secret"
done
IRIS_JOB_ID=$'a\nb\tc' info 0
has '^  IRIS_JOB_ID +a\\x0ab\\x09c +environment '

info 0
has '^  configure +'
has '^  backends +sim(, hip .*)?$'
has '^  compiler +.'
has '^  modules +/'
if grep -q '^#define HAVE_MPI 1' config.h; then
    has '^  MPI +built in'
else
    has '^  MPI +not in this build'
fi
size=$(df --output=size -B 1 /dev/shm | awk 'NR == 2 { printf "%.1f", $1 / 1048576 }')
has "^  /dev/shm +[0-9.]+ of $size MiB free\$"
has '^Devices of sim$'
! grep -q 'no such setting' "$output" || fail "a variable that none has set"
IRIS_HEAP_SISE=1G IRIS_NONSENSE=0 info 0
has '^  note: IRIS_HEAP_SISE is set, but no such setting exists$'
has '^  note: IRIS_NONSENSE is set, but no such setting exists$'

# As JSON: valid whatever the values are, and all that the text has.
json() { # STATUS EXPRESSION: true of the document `d`
    info "$1" --json
    [ -n "$python" ] || return
    "$python" -m json.tool "$output" >/dev/null || fail "no JSON"
    "$python" -c "import json, sys
d = json.load(open(sys.argv[1], encoding='utf-8'))
s = {row['name']: row for row in d['settings']}
sys.exit(not ($2))" "$output" || fail "--json: not so: $2"
}
python=$(command -v python3) || echo "no python3: JSON is not parsed"
json 0 "d['version'].count('.') == 2 and d['problems'] == [] and
        d['unknown'] == [] and len(s) == $(./iris info --env-markdown | tail -n +3 | wc -l)"
json 0 "[b['name'] for b in d['backends'] if b['in_use']] == ['sim'] and
        d['backends'][-1]['runs'] and d['backends'][-1]['reason'] is None and
        d['backends'][-1]['devices'][0]['access'] == [0] and
        d['backends'][-1]['devices'][0]['memory_bytes'] > 0"
json 0 "d['device']['compute_units'] == 4 and not d['device']['gpu'] and
        d['processors'] > 0 and
        0 <= d['shared_memory']['free_bytes'] <=
        d['shared_memory']['bytes'] - (4 << 20) and
        type(d['build']['mpi']) is bool and d['build']['compiler'] != ''"
IRIS_HEAP_SIZE=64M json 0 "s['IRIS_HEAP_SIZE'] == {'name': 'IRIS_HEAP_SIZE',
    'value': '64M', 'default': '1G', 'origin': 'environment', 'bad': False,
    'meaning': s['IRIS_HEAP_SIZE']['meaning']}"
IRIS_HEAP_SIZE='lo"ts\' IRIS_NONSENSE=1 json 1 "s['IRIS_HEAP_SIZE']['bad'] and
    s['IRIS_HEAP_SIZE']['value'] == 'lo\"ts\\\\' and len(d['problems']) == 1 and
    'IRIS_HEAP_SIZE' in d['problems'][0] and d['unknown'] == ['IRIS_NONSENSE']"
IRIS_BACKEND=nonsense json 1 "d['device'] is None and len(d['problems']) == 1"
IRIS_JOB_ID=$'\001\n\x7f\xc3\xa9\xff\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80\xe2\x82' \
    json 0 "s['IRIS_JOB_ID']['value'] ==
    '\\x01\\n\\x7f\\xe9\\xff\\xed\\xa0\\x80\\xc0\\xaf\\xf4\\x90\\x80\\x80\\xe2\\x82'"

probe 0
has '^2 ranks on sim$'
IRIS_SPAWN=processes probe 0

info 0 --version
has '^iris [0-9.]+$'
info 0 --help
has '^Usage: '
info 2 --nonsense
info 2 nonsense

info 0 --env-markdown
awk '/^<!-- settings/ { inside = 1; next }
     /^<!-- \/settings/ { inside = 0 }
     inside' "$page" | diff - "$output" ||
    fail "docs/running.md's table of settings is not what iris info prints"

[ $failed = 0 ] && echo "passed"
[ $failed = 0 ]
