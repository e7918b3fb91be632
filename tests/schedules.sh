#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# iris sim replays a trace of each example, collective and fused operation to its
# end. The messages have the bytes that the program itself counted, for each pair
# of ranks.
set -u
. "$(dirname "$0")/support/script.sh"
src=$root
if ! command -v python3 >/dev/null; then
    echo "skipped: no python3"
    exit 77
fi
# The observer that counts sees kernels of the simulation on the CPU.
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_TIMEOUT_MS=120000

compile() { # NAME ARGUMENT...
    local name=$1
    shift
    # shellcheck disable=SC2086 # the compiler may be a command with options
    ./libtool --silent --mode=link --tag=CC ${CC-cc} ${CFLAGS-} -std=gnu11 \
        -I"$build" -I"$build/include" -I"$src/include" -I"$src/src" \
        -no-install -o "$tmp/$name" "$@" -lpthread -lm
}

# The trace $tmp/NAME.json of a program whose output is $tmp/NAME.out.
compare() { # NAME
    ./iris sim run --json -P "$src/tools/platforms/h200-4.json" \
        -t "$tmp/$1.run" "$tmp/$1.json" >"$tmp/$1.sim"
    check "$1: bytes of each pair" python3 "$here/trace/pairs.py" \
        "$tmp/$1.out" "$tmp/$1.run" "$tmp/$1.sim"
}

# Whether a rank had more operations than its trace holds (traced.h): one that polls
# another rank's memory does, where that rank has no processor for some time.
is_full() { # NAME
    awk '$1 == "observed" && $3 >= 300000 { full = 1 } END { exit !full }' "$tmp/$1.out"
}

# 15_cpp.cpp makes the same calls from C++.
count=0
for source in "$src"/examples/[01]?_*.c; do
    name=$(basename "$source" .c)
    check "$name compiles" compile "$name" -include "$here/trace/traced.h" \
        -I"$src/examples" "$source" examples/libexample.la libirisi.la
    check "$name runs" env TRACED_FILE="$tmp/$name.json" \
        "$tmp/$name" -n 4 --bytes 4000 --iterations 1
    cp "$tmp/out" "$tmp/$name.out"
    if is_full "$name"; then
        echo "not compared: $name: polls filled a trace"
    else
        compare "$name"
        count=$((count + 1))
    fi
done
[ $count -gt 10 ] || { echo "FAILED: $count examples were compared"; failed=1; }

check "collectives compile" compile collectives "$here/trace/collectives.c" \
    libiris.la
for name in all_reduce all_gather reduce_scatter all_to_all broadcast reduce \
    gather scatter all_gatherv all_to_allv send send_recv; do
    check "$name runs" "$tmp/collectives" $name "$tmp/$name.json"
    cp "$tmp/out" "$tmp/$name.out"
    compare $name
done

check "fused operations compile" compile fused "$here/trace/fused.c" libiris.la
for name in matmul_all_reduce all_gather_matmul matmul_all_gather \
    matmul_reduce_scatter; do
    check "$name runs" "$tmp/fused" $name "$tmp/$name.json"
    cp "$tmp/out" "$tmp/$name.out"
    compare $name
done

# A byte more or less of one message is seen, and so is a message to another rank.
fault() { # LABEL NAME SED
    rm -f "$tmp/fault.run"
    sed "$3" "$tmp/$2.json" >"$tmp/fault.json"
    ./iris sim run --json -P "$src/tools/platforms/h200-4.json" \
        -t "$tmp/fault.run" "$tmp/fault.json" >"$tmp/fault.sim" 2>"$tmp/out"
    if [ ! -s "$tmp/fault.run" ] ||
        cmp -s "$tmp/fault.json" "$tmp/$2.json" ||
        python3 "$here/trace/pairs.py" "$tmp/$2.out" "$tmp/fault.run" \
            "$tmp/fault.sim" >"$tmp/out" 2>&1; then
        echo "FAILED: $1 is not seen"
        failed=1
    else
        echo "passed: $1 is seen"
    fi
}
fault "another size" all_to_allv '0,/"sends":"1:12/s//"sends":"1:13/'
fault "another rank" send '0,/"sends":"3:/s//"sends":"2:/'
fault "a lost call" gather '0,/"kernel":"iris_gather"/s//"kernel":"x"/'
fault "a lost put" 07_message_passing_put '0,/"name":"put"/s//"name":"wait"/'

# Two ranks that both wait before they send: their trace cannot be replayed.
cat >"$tmp/dead.json" <<'END'
{"traceEvents":[
{"name":"wait","cat":"iris","pid":0,"tid":"a","ph":"X","ts":1,"dur":9,"args":{"target_rank":0,"offset":64,"held":1,"value":"0x1","program_id":0,"launch":1}},
{"name":"store","cat":"iris","pid":0,"tid":"a","ph":"X","ts":11,"dur":1,"args":{"target_rank":1,"offset":64,"signal":1,"value":"0x1","payload_size":8,"program_id":0,"launch":1}},
{"name":"wait","cat":"iris","pid":1,"tid":"b","ph":"X","ts":1,"dur":20,"args":{"target_rank":1,"offset":64,"held":1,"value":"0x1","program_id":0,"launch":1}},
{"name":"store","cat":"iris","pid":1,"tid":"b","ph":"X","ts":22,"dur":1,"args":{"target_rank":0,"offset":64,"signal":1,"value":"0x1","payload_size":8,"program_id":0,"launch":1}}
],"metadata":{"schema_version":"1.1","world_size":2}}
END
if ./iris sim run -P "$src/tools/platforms/h200-4.json" "$tmp/dead.json" \
    2>"$tmp/out" || ! grep -q "wait for each other: 6 of 8 steps never run" "$tmp/out"; then
    echo "FAILED: messages that wait for each other are not told"
    failed=1
fi
[ $failed = 0 ]
