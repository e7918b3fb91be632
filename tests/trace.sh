#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# Examples that record traces. A JSON reader and iris trace read the traces, and
# the answers are checked. Damaged files give errors.
set -u
. "$(dirname "$0")/support/script.sh"
src=$root
if ! command -v python3 >/dev/null; then
    echo "skipped: no python3"
    exit 77
fi
# The observer that counts sees kernels of the simulation on the CPU.
export IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu IRIS_TIMEOUT_MS=120000
export IRIS_HEAP_BASES_PREFIX=$tmp/at_init

# The command fails with status 1 and says WORD.
refused() { # LABEL WORD COMMAND...
    timeout 300 "${@:3}" >"$tmp/out" 2>&1
    [ $? = 1 ] && grep -q "$2" "$tmp/out"
    verdict "$1" $?
}

# The example with that name, made to record, as $tmp/NAME.
build_one() {
    # shellcheck disable=SC2086 # the compiler may be a command with options
    ./libtool --silent --mode=link --tag=CC ${CC-cc} ${CFLAGS-} -std=gnu11 \
        -include "$here/trace/traced.h" -I"$build" -I"$build/include" \
        -I"$src/include" -I"$src/src" -I"$src/examples" -no-install \
        -o "$tmp/$1" "$src/examples/$1.c" examples/libexample.la libirisi.la \
        -lpthread -lm
}

# The program of this folder with that name, as $tmp/NAME.
build_own() {
    # shellcheck disable=SC2086 # the compiler may be a command with options
    ./libtool --silent --mode=link --tag=CC ${CC-cc} ${CFLAGS-} -std=gnu11 \
        -I"$build" -I"$build/include" -I"$src/include" -no-install \
        -o "$tmp/$1" "$here/trace/$1.c" libiris.la -lpthread
}

for name in 00_load 03_all_store 06_message_passing_load_store \
    07_message_passing_put 08_one_shot_all_reduce; do
    case $name in *_load*) bytes=1004 ;; *) bytes=4004 ;; esac
    check "$name compiles" build_one $name
    export TRACED_FILE=$tmp/$name.json
    check "$name runs" "$tmp/$name" -n 4 --bytes $bytes --iterations 1
    cp "$tmp/out" "$tmp/$name.out"
    check "$name: trace" python3 "$here/trace/check.py" "$TRACED_FILE" \
        "$tmp/$name.out"
    check "$name: order" ./iris trace order "$TRACED_FILE"
done

put=$tmp/07_message_passing_put
check "summary" ./iris trace summary "$put.json"
for word in wait put pass_messages; do
    grep -q "^$word " "$tmp/out" ||
        { echo "FAILED: summary lacks $word"; failed=1; }
done
check "merge" ./iris trace merge -o "$tmp/again.json" "$put"_rank?.json
check "diff" ./iris trace diff "$put.json" "$tmp/again.json"
check "report" ./iris trace report -o "$tmp/report.html" "$put.json"
[ "$(grep -c '^</script></body></html>$' "$tmp/report.html")" = 1 ] ||
    { echo "FAILED: no whole page"; failed=1; }
check "report: arrows" python3 "$here/trace/report.py" "$tmp/report.html" "$put.json"
sed 's/"arrows":\[/"arrows":[],"had":[/' "$tmp/report.html" >"$tmp/no_arrows.html"
sed '/"arrows":/{n;s/^\[[0-9]*,[0-9]*/[0,1/}' "$tmp/report.html" >"$tmp/moved.html"
for fault in no_arrows moved; do
    refused "report: $fault" "arrows: " \
        python3 "$here/trace/report.py" "$tmp/$fault.html" "$put.json"
done
sed 's/"name":"host barrier"/"name":"no barrier"/' "$put.json" >"$tmp/no_barriers.json"
refused "report: barriers" "barriers: " \
    python3 "$here/trace/report.py" "$tmp/report.html" "$tmp/no_barriers.json"

check "resolve" ./iris trace resolve "$put.json"
! grep -vE 'rank [0-3], heap offset [0-9]*, (freed allocation at|the library)' \
    "$tmp/out" | tail -n 3 | grep . ||
    { echo "FAILED: resolve lacks places"; failed=1; }
python3 -c 'import json, sys
for event in json.load(open(sys.argv[1]))["traceEvents"]:
    if event.get("cat") == "iris" and "address" in event["args"]:
        print("pc", event["args"]["address"], "store")' "${put}_rank1.json" \
    >"$tmp/addresses"
check "resolve a list" ./iris trace resolve -b "$put.json" -r 1 "$tmp/addresses"
[ "$(grep -cE '^0x[0-9a-f]*: rank 1, heap offset [0-9]*, ' "$tmp/out")" = \
    "$(wc -l <"$tmp/addresses")" ] ||
    { echo "FAILED: resolve leaves addresses out"; failed=1; }

address=$(head -n 1 "$tmp/addresses" | cut -d ' ' -f 2)
printf 'line 12: size 0x40 of %s\nat abc 0x7 to %s\n17 %s\nno 0x10 here\n17 cd\n' \
    "$address" "$address" "${address#0x}" >"$tmp/lines"
check "resolve lines with several numbers" ./iris trace resolve -b "$put.json" -r 1 "$tmp/lines"
if [ "$(grep -c "^$address: rank 1, heap offset" "$tmp/out")" != 3 ] ||
    ! grep -q "^0x10: on no rank's heap$" "$tmp/out" ||
    ! grep -q '^17 cd$' "$tmp/out"; then
    echo "FAILED: resolve takes the wrong number of a line"
    failed=1
fi

check "reused compiles" build_own reused
check "reused runs" "$tmp/reused" "$tmp/reused.json"
check "resolve reused memory" ./iris trace resolve "$tmp/reused.json"
grep -o '^store by rank 0.*' "$tmp/out" | grep -o 'owner_[0-9]*' >"$tmp/owners"
seq -f 'owner_%g' 0 199 | cmp - "$tmp/owners" ||
    { echo "FAILED: events belong to later owners of their memory"; failed=1; }
grep '^store by rank 0' "$tmp/out" | head -n 1 | grep -o '0x[0-9a-f]*' >"$tmp/one"
check "resolve a reused address" ./iris trace resolve -b "$tmp/reused.json" -r 0 "$tmp/one"
grep -q 'owner_199 (freed since) .*; 199 earlier allocations had this' "$tmp/out" ||
    { echo "FAILED: no word of earlier owners"; failed=1; }
check "report of reused memory" ./iris trace report -o "$tmp/reused.html" "$tmp/reused.json"
check "report: names" python3 "$here/trace/report.py" "$tmp/reused.html" "$tmp/reused.json" \
    $(seq -f 'owner_%g' 0 199)
# A trace has its memory; without, another trace or files with the heaps have it.
grep -v '"iris_\(heap\|allocation\|freed\)"' "$tmp/reused.json" >"$tmp/alone.json"
check "report without memory" ./iris trace report -o "$tmp/alone.html" "$tmp/alone.json"
refused "report: no names" "names of memory: " python3 "$here/trace/report.py" \
    "$tmp/alone.html" "$tmp/alone.json" owner_0
refused "report: no files" "nothing has no addresses of heaps" \
    ./iris trace report -b "$tmp/nothing" -o "$tmp/alone.html" "$tmp/alone.json"
check "report: memory of another trace" \
    ./iris trace report -b "$tmp/reused.json" -o "$tmp/alone.html" "$tmp/alone.json"
cmp "$tmp/alone.html" "$tmp/reused.html" || failed=1
check "resolve by files" ./iris trace resolve -b "$IRIS_HEAP_BASES_PREFIX" -r 0 "$tmp/one"
grep -q '^0x[0-9a-f]*: rank 0, heap offset [0-9]*$' "$tmp/out" ||
    { echo "FAILED: no offset by the files: $(cat "$tmp/out")"; failed=1; }
check "report of the ranks' files" ./iris trace report -o "$tmp/ranks.html" "$put"_rank?.json
python3 "$here/trace/report.py" "$tmp/ranks.html" "$tmp/again.json" >"$tmp/out" ||
    { echo "FAILED: another page of the ranks' files: $(cat "$tmp/out")"; failed=1; }
python3 - "$tmp/long.json" <<'END'
import json, sys
events = [{"name": "put", "cat": "iris", "ph": "X", "ts": i * (1 + i % 7), "dur": 0.7 + i % 5,
           "pid": i % 4, "tid": f"XCC0_CU{i % 48}",
           "args": {"target_rank": (i + 1) % 4, "payload_size": i % 4096}} for i in range(150000)]
json.dump({"traceEvents": events}, open(sys.argv[1], "w"))
END
check "report of many events" ./iris trace report -q -o "$tmp/long.html" "$tmp/long.json"
check "report: many events" python3 "$here/trace/report.py" "$tmp/long.html" "$tmp/long.json"
# A fused call is a slice, and its kernels are parts of it.
check "fused compiles" build_own fused
check "fused runs" "$tmp/fused" matmul_all_reduce "$tmp/fused.json"
check "report of a fused call" ./iris trace report -o "$tmp/fused.html" "$tmp/fused.json"
check "report: fused" python3 "$here/trace/report.py" "$tmp/fused.html" "$tmp/fused.json"
[ "$(grep -o '"call_name":"matmul_all_reduce"' "$tmp/fused.json" | wc -l)" -ge 16 ] ||
    { echo "FAILED: kernels without their call"; failed=1; }
# A browser runs the page, and sees where the script has an error.
shown() { # PAGE
    timeout 300 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$tmp/chromium" \
        --virtual-time-budget=2000 --dump-dom "file://$1" 2>/dev/null >"$tmp/dom"
    grep -q '<td class="t[^>]*>wait</td>' "$tmp/dom" && grep -q 'button>.*wait</button>' "$tmp/dom" &&
        grep -q '<canvas id="line".* height="[1-9]' "$tmp/dom"
}
if command -v chromium >/dev/null; then
    check "report in a browser" shown "$tmp/report.html"
    shown "$tmp/fused.html"
    grep -q 'button>.*launch fill<' "$tmp/dom" && ! sed '/<script>/,$d' "$tmp/dom" | grep iris_k_ ||
        { echo "FAILED: names of the library's own kernels"; failed=1; }
    sed 's/^const num=/const num==/' "$tmp/report.html" >"$tmp/broken.html"
    shown "$tmp/broken.html" && { echo "FAILED: a broken page is not seen"; failed=1; }
fi

# Every byte is in the matrix, from the rank that had it to the one that got it,
# and in the prediction: with a put's or get's signal of 8 bytes where there is one.
check "moves compiles" build_own moves
moved() { # KIND FROM_0_TO_1 FROM_1_TO_0
    check "moves: $1" "$tmp/moves" "$1" "$tmp/moves.json"
    check "moves: $1, summary" ./iris trace summary "$tmp/moves.json"
    [ "$(tail -n 2 "$tmp/out" | tr -s ' ')" = " 0 0 $2
 1 $3 0" ] || { echo "FAILED: $1: not the matrix $2, $3"; failed=1; }
    check "moves: $1, predicted" ./iris sim run --json \
        --platform "$src/tools/platforms/h200-4.json" "$tmp/moves.json"
    [ "$(grep -o '"[a-z]*_bytes": [0-9]*' "$tmp/out" | tr -dc '0-9\n' |
        tr '\n' ' ')" = "$2 $3 $3 $2 " ] ||
        { echo "FAILED: $1: the model moves other bytes"; failed=1; }
}
moved puts 2568 2568
moved gets 8 2568
moved stream 2560 256
moved collectives 4680 4720

# IRIS_TRACE: programs that know nothing of it, whichever way they end. The trace
# has each rank's store, and the program's status is its own.
check "ending compiles" build_own ending
traced_from_outside() { # LABEL STATUS COMMAND...
    local label=$1 status=$2 ret=0 pids=() pid
    shift 2
    rm -f "$tmp"/outside*
    for rank in ${RANKS-none}; do
        if [ "$rank" != none ]; then
            export IRIS_RANK=$rank IRIS_NUM_RANKS=2 IRIS_JOB_ID=outside$$
        fi
        (cd "$tmp" && IRIS_TRACE=outside.json timeout 300 "$@") \
            >"$tmp/out$rank" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid"
        ret=$?
    done
    unset IRIS_RANK IRIS_NUM_RANKS IRIS_JOB_ID
    if [ $ret = "$status" ] && ./iris trace summary "$tmp/outside.json" >"$tmp/out" &&
        grep -q "^store  *${STORES-2} " "$tmp/out" && grep -q '^2 ranks\|of 2 ranks' "$tmp/out" &&
        [ "$(echo "$tmp"/outside*)" = "$tmp/outside.json" ]; then
        echo "passed: IRIS_TRACE, $label"
    else
        echo "FAILED ($ret): IRIS_TRACE, $label"
        tail -n 5 "$tmp"/out*
        failed=1
    fi
}
for how in finalize:0 later:7 exit:5; do
    RANKS="0 1" traced_from_outside "${how%:*}" "${how#*:}" "$tmp/ending" "${how%:*}"
done
STORES=1 RANKS="0 1" traced_from_outside "a rank that is killed" 137 "$tmp/ending" killed
IRIS_NUM_RANKS=2 traced_from_outside fail 3 "$tmp/ending" fail
IRIS_NUM_RANKS=2 IRIS_SPAWN=processes \
    traced_from_outside "fail, processes" 3 "$tmp/ending" fail
if ! IRIS_TRACE=$tmp/none/t.json "$tmp/ending" finalize >"$tmp/out" 2>&1 ||
    ! grep -q 'IRIS_TRACE: .*cannot write' "$tmp/out"; then
    echo "FAILED: IRIS_TRACE to a folder that is not there"
    failed=1
fi
# Ranks that differ in it are told so.
(cd "$tmp" && IRIS_RANK=0 IRIS_NUM_RANKS=2 IRIS_JOB_ID=differ$$ \
    IRIS_TRACE=differ.json timeout 300 "$tmp/ending" finalize >"$tmp/out0" 2>&1) &
IRIS_RANK=1 IRIS_NUM_RANKS=2 IRIS_JOB_ID=differ$$ \
    timeout 300 "$tmp/ending" finalize >"$tmp/out1" 2>&1
wait
if ! grep -q 'IRIS_TRACE to the same values' "$tmp/out0" ||
    ! grep -q 'IRIS_TRACE to the same values' "$tmp/out1"; then
    echo "FAILED: ranks differ in IRIS_TRACE and do not say so"
    tail -n 3 "$tmp/out0" "$tmp/out1"
    failed=1
fi
# A program that traces by itself: both files are there, the later one as well.
rm -f "$tmp"/outside*
check "IRIS_TRACE of a program that traces" \
    env IRIS_TRACE="$tmp/outside.json" "$tmp/moves" puts "$tmp/moves.json"
check "its own trace" ./iris trace summary "$tmp/moves.json"
grep '^put ' "$tmp/out" >"$tmp/own"
check "the trace from outside" ./iris trace summary "$tmp/outside.json"
grep '^put ' "$tmp/out" | cmp - "$tmp/own" ||
    { echo "FAILED: IRIS_TRACE lacks what the program records"; failed=1; }

# Upstream's own form: cycles, and no more fields than its schema has.
for rank in 0 1; do
    cat >"$tmp/up_rank$rank.json" <<END
{"traceEvents": [
  {"name": "put", "cat": "iris", "ts": 10${rank}00, "pid": $rank,
   "tid": "XCC0_CU1", "args": {"program_id": 3, "target_rank": 1,
   "address": "0x7f0000001000", "payload_size": 64}, "ph": "X", "dur": 50},
  {"name": "process_name", "ph": "M", "pid": $rank,
   "args": {"name": "Rank $rank"}}], "displayTimeUnit": "ns",
 "metadata": {"schema_version": "1.1", "num_events": 1, "rank": $rank,
  "world_size": 2, "time_unit": "raw cycles (s_memrealtime @ 100MHz)"}}
END
done
check "upstream's files" ./iris trace merge -o "$tmp/up.json" "$tmp"/up_rank?.json
python3 -c 'import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
assert [e["ts"] for e in events if e["ph"] == "X"] == [0, 100], events
' "$tmp/up.json" || { echo "FAILED: upstream's times"; failed=1; }
check "upstream's summary" ./iris trace summary "$tmp/up.json"
grep -q "the trace does not say how exact its clocks are" "$tmp/out" ||
    { echo "FAILED: a summary invents how exact clocks are"; failed=1; }
python3 - "$tmp/loads.json" <<'END'
import json, sys
def event(name, ts):
    return {"name": name, "cat": "iris", "ph": "X", "ts": ts, "dur": 1,
            "pid": 0, "tid": "t", "args": {"target_rank": 1,
                                           "payload_size": 7}}
json.dump({"traceEvents": [event("load", 1), event("store", 2),
                           event("load", 3), event("atomic_add", 4)]},
          open(sys.argv[1], "w"))
END
check "summary of loads" ./iris trace summary "$tmp/loads.json"
[ "$(tail -n 2 "$tmp/out" | tr -s ' ')" = " 0 0 14
 1 14 0" ] || { echo "FAILED: loads go the wrong way in the matrix"; failed=1; }
# A group's list may have any number: 2^32 - 1 is no rank, -1 neither.
echo '{"traceEvents": [{"name": "all_gather", "ph": "X", "ts": 1, "dur": 1,
  "pid": 0, "args": {"kernel": "iris_all_gather", "payload_size": 14,
  "members": "0-1,4294967295"}}]}' >"$tmp/members.json"
check "summary of strange members" ./iris trace summary "$tmp/members.json"
[ "$(tail -n 2 "$tmp/out" | tr -s ' ')" = " 0 0 14
 1 0 0" ] || { echo "FAILED: strange members in the matrix"; failed=1; }
refused "files of two kinds" "one kind" \
    ./iris trace merge -o "$tmp/x.json" "$tmp/up_rank0.json" "${put}_rank1.json"

# Damaged files: an error with the byte, and no crash.
for bytes in 0 1 17 1000 5001; do
    head -c $bytes "$put.json" >"$tmp/cut.json"
    refused "cut after $bytes bytes" "byte $bytes: " ./iris trace summary "$tmp/cut.json"
done
refused "no such file" "No such file" ./iris trace summary "$tmp/none.json"
python3 - "$put.json" "$tmp/bad" <<'END'
import random, sys
random.seed(7)
data = open(sys.argv[1], "rb").read()[:20000]
for i in range(200):
    bad = bytearray(data)
    for _ in range(random.randint(1, 8)):
        bad[random.randrange(len(bad))] = random.choice(b'{}[]",:\\0e-\xff\x00')
    open(f"{sys.argv[2]}{i}.json", "wb").write(bad)
END
for ((i = 0; i < 200; i++)); do
    timeout 300 ./iris trace summary "$tmp/bad$i.json" >/dev/null 2>"$tmp/err"
    ret=$?
    if [ $ret != 1 ] || ! grep -q 'byte [0-9]*: ' "$tmp/err"; then
        echo "FAILED ($ret): damaged file $i"
        failed=1
    fi
done
python3 - "$tmp/hostile.json" <<'END'
import json, sys
numbers = [0, 1, 4095, 4096, 2**31 - 1, 2**31, 2**60, 2**63 - 1, 2**64 - 1]
sizes = [0, 1, 4095, 4096, 2**20, 2**60, 2**63 - 1, 2**63, 2**64 - 1]
events = [{"name": "launch k", "cat": "iris_host", "ph": "X", "ts": -1, "dur": 1, "pid": rank,
           "tid": "host_0", "args": {}} for rank in (0, 1, 4095, 2**31 - 1)]
events += [{"name": name, "cat": "iris", "ph": "X", "ts": i, "dur": 1, "pid": i % 2, "tid": "t",
            "args": {"target_rank": (i % 2 + j) % 2 if j < 8 else i, "offset": i, "atomic": j % 2,
                     "payload_size": sizes[j], "program_id": j, "value": i}}
           for i in numbers for j in range(9) for name in ("store", "load", "wait", "atomic_add")]
json.dump({"traceEvents": events, "metadata": {"rank": 0}}, open(sys.argv[1], "w"))
END
timeout 60 ./iris trace order "$tmp/hostile.json" >"$tmp/out" 2>&1
[ $? -le 1 ] && grep -q "without order in" "$tmp/out" || fail "hostile numbers"
[ $failed = 0 ]
