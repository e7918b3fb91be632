#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# iris sim on traces and reports with known results.
set -u
. "$(dirname "$0")/support/script.sh"
iris=$build/iris

# 1 us to a peer, 100 GB/s within a node of two ranks, 10 between nodes.
cat >"$tmp/p.json" <<'EOF'
{"name": "two & two", "gpu": true, "node_ranks": 2, "links": 1, "cache_mb": 0,
 "launch_us": 2, "flag_us": 1, "meet_us": 10, "lanes_us": 0.5, "peer_us": 0.25,
 "combine_us": 0.75, "hop_us": 5, "link_gbs": 100, "reduce_gbs": 1000,
 "local_gbs": 2000, "network_gbs": 10, "other": [1, {"x": null}]}
EOF

# A trace of operations, each a line: event RANK NAME TS DUR TARGET BYTES [MEMBER...]
event() {
    echo "{\"name\":\"$2\",\"cat\":\"iris\",\"pid\":$1,\"tid\":\"a\",\"ph\":\"X\",\"ts\":$3,\"dur\":$4,\"args\":{\"target_rank\":$5,\"payload_size\":$6,\"address\":\"0x1000\",\"program_id\":0,\"xcc_id\":0,\"cu_id\":1,\"launch\":1,\"value\":\"0x1\"${7-}}},"
}
trace() { # NAME RANKS, with events on stdin
    sed "1i {\"traceEvents\":[
        \$s/,\$/],\"metadata\":{\"schema_version\":\"1.1\",\"world_size\":$2}}/" >"$tmp/$1.json"
}

# 1 us of work, then 1,000,000 bytes: 10 us, and the flag's.
{
    event 0 store 1 1 1 0 ',"offset":32,"signal":1'
    event 0 store 3 1 1 1000000 ',"offset":64,"signal":1'
    event 1 wait 1 2 1 8 ',"offset":32,"held":1'
    event 1 wait 3 9 1 8 ',"offset":64,"held":1'
} | trace ping 2
says "a message" 0 "12.000 us, of which the critical path computes 1.000" \
    "$iris" sim run -P "$tmp/p.json" "$tmp/ping.json"
says "a wait" 0 "1            12.000        0.001       11.999" \
    "$iris" sim run -P "$tmp/p.json" "$tmp/ping.json"
says "bytes" 0 '"wait_us": 0, "link_us": 10, "sent_bytes": 1000000' \
    "$iris" sim run -j -P "$tmp/p.json" "$tmp/ping.json"
says "a link twice as fast" 0 "7.000 us," \
    "$iris" sim run -w link=2x -P "$tmp/p.json" "$tmp/ping.json"
says "no time between operations" 0 "11.000 us," \
    "$iris" sim run -c 0 -P "$tmp/p.json" "$tmp/ping.json"
says "a trace of the run" 0 "12.000 us" \
    "$iris" sim run -P "$tmp/p.json" -t "$tmp/run.json" "$tmp/ping.json"
says "iris trace reads it" 0 "2 ranks" ./iris trace summary "$tmp/run.json"

# Two ranks of another node send to one: its way in takes one after the other.
{
    event 2 put 1 1 0 1000000
    event 3 put 1 1 0 1000000
} | trace fan 4
says "two senders" 0 "205.000 us" "$iris" sim run -P "$tmp/p.json" "$tmp/fan.json"

# A wait of 900 us, after which the rank sends at once: no time of its own.
args='"address":"0x1000","program_id":0,"xcc_id":0,"cu_id":1,"payload_size":8,"launch":1'
cat >"$tmp/wait.json" <<EOF
{"traceEvents":[
{"name":"store","cat":"iris","pid":0,"tid":"a","ph":"X","ts":950.000,"dur":0.100,"args":{"target_rank":1,"offset":64,"signal":1,"value":"0x1",$args}},
{"name":"wait","cat":"iris","pid":1,"tid":"b","ph":"X","ts":60.000,"dur":900.000,"args":{"target_rank":1,"offset":64,"held":1,"value":"0x1",$args}},
{"name":"store","cat":"iris","pid":1,"tid":"b","ph":"X","ts":963.000,"dur":0.100,"args":{"target_rank":0,"offset":128,"signal":1,"value":"0x1",$args}},
{"name":"wait","cat":"iris","pid":0,"tid":"a","ph":"X","ts":952.000,"dur":20.000,"args":{"target_rank":0,"offset":128,"held":1,"value":"0x1",$args}}
],"metadata":{"schema_version":"1.1","world_size":2}}
EOF
# 0 us to the store (the first), 1.000 on its way, then 3.000 to the second.
says "a traced wait is not work" 0 "5.001 us" \
    "$iris" sim run -P "$tmp/p.json" "$tmp/wait.json"

# What the platform times in place of the traced machine: 3 us of a release, 4 and
# 50 GB/s of a copy engine. Each trace has one rank that acts and one that waits.
sed 's/"launch_us": 2/&, "release_us": 3, "copy_us": 4, "engine_gbs": 50/' \
    "$tmp/p.json" >"$tmp/costs.json"
signal() { # NAME TS DUR OFFSET
    echo "{\"name\":\"$1\",\"cat\":\"iris\",\"pid\":0,\"tid\":\"a\",\"ph\":\"X\",\"ts\":$2,\"dur\":$3,\"args\":{\"target_rank\":1,\"offset\":$4,\"signal\":1,\"value\":\"0x1\",$args}},"
}
waits() { # TS DUR OFFSET, and the end of the trace
    cat <<EOF
{"name":"wait","cat":"iris","pid":1,"tid":"b","ph":"X","ts":$1,"dur":$2,"args":{"target_rank":1,"offset":$3,"held":1,"value":"0x1",$args}}
],"metadata":{"schema_version":"1.1","world_size":2}}
EOF
}
timed() { # TRACE US LABEL OPTION...
    says "$3" 0 "$2 us, of which" \
        "$iris" sim run -P "$tmp/costs.json" "${@:4}" "$tmp/$1.json"
}

# Two signals with 2 us between them: 3 + 2 + 3, and the flag's 1.
{
    echo '{"traceEvents":['
    signal store 5 100 64
    signal store 107 1 128
    waits 0 200 128
} >"$tmp/release.json"
says "two releases" 0 "9.000 us, of which the critical path computes 2.000 us" \
    "$iris" sim run -P "$tmp/costs.json" "$tmp/release.json"
timed release 15.000 "releases of twice the time" -w release=2x
timed release 7.000 "releases without intervals" -c 0
# Without a release the first is a part of the second's message.
sed 's/"offset":64,"signal":1,/"offset":64,/' "$tmp/release.json" >"$tmp/one.json"
timed one 4.000 "one release"

# 3 of a release, 4 us between operations, 2 of an exchange, 3, and 1.
{
    echo '{"traceEvents":['
    signal store 5 1 64
    signal atomic_xchg 8 50 0 | sed 's/"offset":0,"signal":1,//'
    signal store 60 1 128
    waits 0 200 128
} >"$tmp/atomic.json"
timed atomic 13.000 "a result before a signal"
timed atomic 16.000 "results and flags of twice the time" -w flag=2x
sed 's/atomic_xchg/atomic_add/' "$tmp/atomic.json" >"$tmp/add.json"
timed add 61.000 "an atomic without a result"

# 3 of a release, 2 of the signal's own result, 3 between, 3 of a release, and 1.
{
    echo '{"traceEvents":['
    signal atomic_cas 5 50 64
    signal store 58 1 128
    waits 0 200 128
} >"$tmp/cas.json"
timed cas 12.000 "a signal with a result"
sed 's/atomic_cas/atomic_or/' "$tmp/cas.json" >"$tmp/or.json"
timed or 10.000 "a signal without a result"

# Copies of 1 and 0.5 MB: 20 and 10 us, one after the other, and the start's 4.
# The copy of 1 MB the other way takes 24 at the same time.
copy() { # NAME TS BYTES
    echo "{\"name\":\"$1 on stream\",\"cat\":\"iris_host\",\"pid\":0,\"tid\":\"h\",\"ph\":\"X\",\"ts\":$2,\"dur\":1,\"args\":{\"target_rank\":1,\"payload_size\":$3}},"
}
{
    echo '{"traceEvents":['
    copy put 1 1000000
    copy put 3 500000
    copy get 5 1000000
    waits 0 1 64
} >"$tmp/copy.json"
timed copy 34.000 "copies"
timed copy 38.000 "a start of twice the time" -w copy=2x
timed copy 19.000 "engines of twice the rate" -w engine=2x
sed 's/"engine_gbs": 50/"engine_gbs": 0/' "$tmp/costs.json" >"$tmp/links.json"
says "engines as fast as links" 0 "19.000 us, of which" \
    "$iris" sim run -P "$tmp/links.json" "$tmp/copy.json"
sed 's/ on stream//' "$tmp/copy.json" >"$tmp/kernel.json"
timed kernel 16.000 "copies by kernels"

# A kernel of 50 us, and then a collective that the host called before: its place
# is its kernel's run, after the other's.
for rank in 0 1; do
    cat <<EOF
{"name":"launch k","cat":"iris_host","pid":$rank,"tid":"h","ph":"X","ts":1,"dur":1,"args":{"kernel":"k","stream":"0x5","id":1}},
{"name":"all_gather","cat":"iris_host","pid":$rank,"tid":"h","ph":"X","ts":3,"dur":4,"args":{"kernel":"iris_all_gather","members":"0-1","payload_size":1000,"stream":"0x5","id":2}},
{"name":"launch iris_k_ccl_move","cat":"iris_host","pid":$rank,"tid":"h","ph":"X","ts":5,"dur":1,"args":{"kernel":"iris_k_ccl_move","stream":"0x5","id":3}},
{"name":"k","cat":"iris_kernel","pid":$rank,"tid":"s","ph":"X","ts":10,"dur":50,"args":{"kernel":"k","stream":"0x5","id":100}},
{"name":"iris_k_ccl_move","cat":"iris_kernel","pid":$rank,"tid":"s","ph":"X","ts":70,"dur":30,"args":{"kernel":"iris_k_ccl_move","stream":"0x5","id":101}},
EOF
done | sed '1i {"traceEvents":[
    $s/,$/],"metadata":{"schema_version":"1.1","world_size":2}}/' >"$tmp/stream.json"
says "a kernel before a collective" 0 "51.011 us" \
    "$iris" sim run -P "$tmp/p.json" "$tmp/stream.json"
says "half of its time" 0 "26.011 us" \
    "$iris" sim run -c 0.5 -P "$tmp/p.json" "$tmp/stream.json"
grep -v '"name":"k"' "$tmp/stream.json" >"$tmp/lost.json"
says "a run that is not in the trace" 0 "1.010 us" \
    "$iris" sim run -P "$tmp/p.json" "$tmp/lost.json"
sed 's/^{"name":"k".*"pid":\([01]\).*/&{"name":"wait","cat":"iris","pid":\1,"tid":"c","ph":"X","ts":11,"dur":40,"args":{"launch":100,"target_rank":\1,"offset":8,"held":1,"value":"0x1"}},/' \
    "$tmp/stream.json" >"$tmp/waits.json"
says "kernels that wait do not compute" 0 "1.011 us" \
    "$iris" sim run -P "$tmp/p.json" "$tmp/waits.json"

# Collectives, whose parts are known: two shots of 1 GB between two ranks send
# 1 GB in 10,000 us and combine it in 1,000.
collective() { # BYTES RANKS OPERATION OPTION...
    "$iris" sim collective -P "$tmp/p.json" -b "$1" -n "$2" "${@:3}"
}
says "two shots" 0 "11012.750 us, 1000000000 bytes sent: launch 2.0 meet 10.0 combine 0.8 link 10000.0 reduce 1000.0" \
    collective 1000000000 2 all_reduce
says "the library's choice" 0 "ranks one_shot_packet " collective 8K 2 all_reduce
grep -q " 16384 bytes sent: launch 2.0 flag 1.0 lanes 5.0 combine" "$tmp/out" ||
    fail "packets are not twice the bytes in one shot"
says "another choice" 0 "ranks two_shot " collective 8K 2 all_reduce -v two_shot
says "no such variant" 2 "no variant nine" collective 8K 2 all_reduce -v nine
says "a faster link" 0 "link 5000.0" \
    collective 1000000000 2 all_reduce -w link=2x
sed 's/"links": 1/&, "shared_memory": true/' "$tmp/p.json" >"$tmp/shared.json"
says "one memory for both ranks" 0 "meet 10.0 combine 0.8 link 20000.0 reduce 2000.0" \
    "$iris" sim collective -P "$tmp/shared.json" -b 1000000000 -n 2 all_reduce
says "many ranks" 0 "4096 ranks far " \
    collective 64M 2:4096 all_reduce
sed 's/"network_gbs": 10/"network_gbs": 0/' "$tmp/p.json" >"$tmp/near.json"
says "no network" 1 "no network_gbs" \
    "$iris" sim collective -P "$tmp/near.json" -b 8K -n 4 all_reduce

# A report that the model itself wrote is fitted; one wrong row stands out.
report() { # OPERATION...
    echo '{"metadata": {"ranks": 2, "gpu": true}, "results": ['
    for op in "$@"; do
        for bytes in 1K 16K 256K 1M 16M 256M; do
            collective $bytes 2 "$op" -j | sed '1s/^\[//; $s/\]$//; s/"us"/"median_us"/'
            echo ,
        done
    done
    echo '{"op": "barrier", "bytes": 0, "median_us": 3}]}'
}
report all_reduce all_gather reduce_scatter all_to_all >"$tmp/report.json"
says "a fit" 0 "leave-one-out: mean error 0." \
    "$iris" sim fit "$tmp/report.json" -o "$tmp/fitted.json"
grep -q "^1 rows are of operations" "$tmp/out" || fail "a barrier is fitted"
says "the fitted platform" 0 '"link_gbs": 100' cat "$tmp/fitted.json"
sed '/all_to_all.*: 1048576,/s/median_us": /&3/' "$tmp/report.json" >"$tmp/off.json"
says "a wrong row" 0 "(all_to_all of 1048576 bytes)" "$iris" sim fit "$tmp/off.json"
says "no rows" 1 "0 rows are too few" "$iris" sim fit "$tmp/p.json"
says "no report" 1 "sim.sh: byte 0" "$iris" sim fit "$0"
sed 's/"link_gbs": 100/"link_gbs": -1/' "$tmp/p.json" >"$tmp/bad.json"
says "a negative rate" 1 "link_gbs" "$iris" sim run -P "$tmp/bad.json" "$tmp/ping.json"
for file in "$here"/../tools/platforms/*.json; do
    says "${file##*/}" 0 "ranks" \
        "$iris" sim collective -P "$file" -b 1M -n 2 all_reduce
done

# Published rates of eight MI300X, in GiB/s: the least and the most. A modelled rate
# passes from 0.9 times the least to 1.1 times the most. docs/timing.md has the error
# against each, which is 10.3 % at most, and the rows that are not modelled.
gib() { # PAIR|ALL OPTION...: rate out of rank 0 for 1 GiB to a peer, or to each
    local which=$1 rank peer
    shift
    for ((rank = 0; rank < 8; rank++)); do
        for ((peer = 0; peer < 8; peer++)); do
            [ $peer != $rank ] && [[ $which = all || $rank$peer = 01 ]] &&
                event $rank put 1 1 $peer 1073741824
        done
    done | trace mi 8
    "$iris" sim run -P "$here/../tools/platforms/mi300x-8.json" "$@" "$tmp/mi.json" |
        awk 'NR == 1 { us = $1 } $1 == "0" { print $6 / us * 1e6 / 2 ^ 30 }'
}
near() { # RATE LEAST MOST
    awk -v rate="$1" -v least="$2" -v most="$3" \
        'BEGIN { exit !(rate >= 0.9 * least && rate <= 1.1 * most) }'
}
pair=$(gib pair) all=$(gib all)
for row in "stores of a pair:$pair:44.6:46.4" "loads of a pair:$pair:45.7:47.8" \
    "exchanges of a pair:$pair:43.9:44.2" "stores of all:$all:297:302"; do
    IFS=: read -r label rate least most <<<"$row"
    if near "$rate" "$least" "$most"; then
        echo "passed: $label, $rate GiB/s"
    else
        fail "$label: $rate GiB/s, published are $least to $most"
    fi
done
near "$(gib pair -w link=0.8x)" 44.6 46.4 && fail "slower links are as published"
near "$(gib all -w link=0.8x)" 297 302 && fail "slower links are as published"
exit $failed
