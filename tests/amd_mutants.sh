#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources first
#
# Checks that the rules of amd_code.sh find protocol bugs. Each edit below makes one
# in a copy of device/, and the named rule must refuse its code for gfx942, gfx950
# or gfx90a. The test fails if an edit changes nothing, has a range without an end,
# or does not compile. It compiles only the code that the rule needs. It needs no
# GPU. IRIS_TEST_LONG=1 or AMD_MUTANTS=PATTERN takes more than every 24th edit.

srcdir=${srcdir:-$(dirname "$0")/..}
srcdir=$(cd "$srcdir" && pwd) || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
. "$srcdir/tests/amd/lib.sh"

command -v clang-19 >/dev/null 2>&1 || {
    echo "skipped: clang-19 is not here"
    exit 77
}
amd_kernels signal.h >"$dir/traced.hip"
amd_kernels signal.h amd/orders.h >"$dir/orders.hip"
amd_kernels barrier.h amd/protocols.h >"$dir/protocols.hip"
echo '#include <amd/narrow.h>' >"$dir/narrow.hip"
{
    cat "$dir"/{orders,protocols,narrow}.hip
} >"$dir/none.hip"
gpu=gfx942

# What is compiled to see whether a rule refuses an edit of a file: sets $part,
# a file's name, and $options; a mutant may name the kernel. part_for RULE FILE
part_for() {
    local kernels=${2#kernels/}
    part=narrow options=(-DAMD_CODE_SAMPLE)
    case "$1 $2" in
    none*) part=none options+=(-DAMD_{waits,signals,ranks,bulk,products}
        -DAMD_NARROW_{ccl_{reduce,move,packet,unordered,wg,pairs},fill,matmul}) ;;
    "any "*/ccl_[ms][ep]*) options+=(-DAMD_NARROW_ccl_{near,wg}) ;;
    "any core"* | "any wg/"*) part=protocols options+=(-DAMD_{waits,signals,ranks}) ;;
    products* | *product_gpu.h) part=protocols options+=(-DAMD_products) ;;
    waits* | signals* | ranks* | bulk*) part=protocols options+=("-DAMD_$1") ;;
    bits* | orders* | accesses* | writeback*) part=orders ;;
    records*) part=traced options=(-DIRIS_TRACE=1) ;;
    *kernels/ccl_space.h | *kernels/ccl_meet.h) ;;
    *wg_ccl_tile.h) options+=(-DAMD_NARROW_ccl_tile) ;;
    *kernels/ccl_batch.h) options+=(-DAMD_NARROW_ccl_batch -DIRIS_MAX_LANES=256) ;;
    steps* | *wg_ccl.h) options+=(-DAMD_NARROW_ccl_wg) ;;
    "any "*/ccl_exchange.h) options+=(-DAMD_NARROW_ccl_spread) ;;
    *kernels/ccl_exchange.h) options+=(-DAMD_NARROW_ccl_packet) ;;
    *kernels/ccl_channel.h) options+=(-DAMD_NARROW_ccl_pairs) ;;
    *kernels/ccl_loose.h) options+=(-DAMD_NARROW_ccl_unordered) ;;
    *kernels/ccl_combine.h) options+=(-DAMD_NARROW_ccl_reduce) ;;
    *kernels/*) options+=("-DAMD_NARROW_${kernels%.h}") ;;
    packets* | ccl*) options+=(-DAMD_NARROW_ccl_packet) ;;
    fma*) options+=(-DAMD_NARROW_matmul) ;;
    esac
    case "$part ${options[*]}" in
    narrow*NARROW*) ;;
    narrow*) options+=("-DAMD_NARROW_${kernel-ccl_reduce}") ;;
    esac
}

# Whether the last line of each range of an edit is there, behind which sed would
# go on to the end of the file: ends_are_there FILE EDIT
ends_are_there() {
    local range
    grep -oE '/[^/]+/,/[^/]+/' <<<"$2" | while read -r range; do
        sed -nE "$range p" "$1" | tail -n 1 | sed -nE "/${range#*/,/}p" |
            grep -q . || { echo "FAILED, no end of $range"; return 1; }
    done
}

# Whether this is the code without an edit, which is compiled once for each part.
is_same() {
    local base
    base=$dir/$gpu.$(cksum <<<"$part ${options[*]}" | cut -d' ' -f1)
    (
        flock 9
        if [ ! -e "$base.s" ]; then
            amd_headers "$srcdir/device" "$base" && cp "$dir/$part.hip" "$base.hip" &&
                amd_compile "$base" "$base" $gpu clang-19 "${amd_alone[@]}" \
                    "${options[@]}"
        fi
    ) 9>"$base.lock"
    cmp -s <(grep -vE '\.file|hip_cuid' "$1") <(grep -vE '\.file|hip_cuid' "$base.s")
}

# Makes and reads one: try NUMBER WHAT RULE FILE EDIT
try() {
    local own=$dir/$1 what="$gpu, $2" rule=$3 file=$4 edit=$5 part options
    local traced=0
    part_for "$rule" "$file"
    [ "$part" != traced ] || traced=1
    mkdir "$own" && cp -R "$srcdir/device" "$own/device" &&
        amd_headers "$own/device" "$own/include" &&
        cp "$dir/$part.hip" "$own/code.hip" || return 1
    ends_are_there "$own/device/$file" "$edit" || return 1
    sed -E -i "$edit" "$own/device/$file" || return 1
    if [ -n "$edit" ] && cmp -s "$srcdir/device/$file" "$own/device/$file"; then
        echo "$what: FAILED, the edit changes nothing"
        return 1
    fi
    if ! amd_compile "$own/code" "$own/include" $gpu clang-19 "${amd_alone[@]}" \
        "${options[@]}"; then
        echo "$what: FAILED, it does not compile"
        head -20 "$own/code.log" | cut -c 1-240
        return 1
    fi
    if [ "$rule" = any ] && is_same "$own/code.s"; then
        echo "$what: changes no code"
        rm -rf "$own"
        return
    fi
    amd_read $gpu $gpu "$own/code.s" -v traced=$traced >"$own/read"
    judge "$what" "$rule" "$own/read"
    local ret=$?
    rm -rf "$own"
    return $ret
}

# judge WHAT RULE OUTPUT
judge() {
    if [ "$2" = none ]; then
        grep FAILED "$3" || { echo "$1: accepted, ok" && return 0; }
        echo "$1: FAILED, refused"
    elif grep -qE "^$gpu ${2/any/[a-z]+}: .*FAILED$" "$3"; then
        echo "$1: refused by $(sed -nE 's/^[^ ]* ([a-z]+): .*FAILED$/\1/p' "$3" |
            paste -sd,), ok"
        return 0
    else
        echo "$1: FAILED, $2 does not refuse it"
        grep FAILED "$3"
    fi
    return 1
}

# mutant WHAT RULE FILE EDIT; AMD_MUTANTS=PATTERN leaves out the others.
listed=0
mutant() {
    listed=$((listed + 1))
    [[ "$gpu, $1" == *${AMD_MUTANTS-}* ]] || return 0
    [ -n "${IRIS_TEST_LONG-}${AMD_MUTANTS-}" ] || [ $((listed % 24)) = 1 ] || return 0
    amd_later try $((amd_count + 1)) "$@"
}

# One for each line of a file that matches: any rule may refuse it. Lines of which
# an edit breaks nothing are left out. sweep AREA FILE LINES EDIT [HARMLESS]
sweep() {
    local line
    while IFS=: read -r line _; do
        mutant "$1, $2:$line" any "$2" "$line $4"
    done < <(grep -nE "$3" "$srcdir/device/$2" | grep -vE "^[0-9]+: \*|${5-^\$}")
}

mutant "no edit" none core/wait.h ""

# What releases.
mutant "stores at agent scope behind a system release" bits core/atomic.h \
    '/void iris_d_store_u##bits\(/,/STORING/ s/(how = iris_d_released\(how\);) */\1 if (how.scope == IRIS_SCOPE_SYSTEM) { how.scope = IRIS_SCOPE_AGENT; } /'
mutant "no write-back before a system release" orders core/atomic.h \
    's/__builtin_amdgcn_fence\(__ATOMIC_RELEASE, ""\)/(void)0/'
mutant "a system release that writes back for the agent" orders core/atomic.h \
    's/__builtin_amdgcn_fence\(__ATOMIC_RELEASE, ""\)/__builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent")/'
mutant "no wait between write-back and release" writeback core/atomic.h \
    '/iris_d_order_t iris_d_released\(/,/^}/ s/__asm__ volatile\(.*//'
mutant "releases that are none" orders core/order.h \
    '/iris_bool_t iris_d_releases\(/,/^}/ s/return .*/return 0;/'
mutant "a signal that is set relaxed" signals core/signal.h \
    '/void iris_signal_set\(/,/^}/ s/IRIS_RELEASE/IRIS_RELAXED/'
mutant "a signal that is added relaxed" signals core/signal.h \
    '/void iris_signal_add\(/,/^}/ s/IRIS_RELEASE/IRIS_RELAXED/'
mutant "a signal that is added at agent scope" signals core/signal.h \
    '/void iris_signal_add\(/,/^}/ s/SCOPE_SYSTEM/SCOPE_AGENT/'
mutant "a signal ahead of its element" signals core/signal.h \
    '/void iris_put_signal_##name/,/^ *\}/ { /iris_put_##name/d; s/(iris_signal_set\(.*\); *)\\/\1 iris_put_##name(dev, from_ptr, to_ptr, to_rank); \\/ }'
mutant "a bulk put that signals without a barrier" signals wg/wg.h \
    '/void iris_wg_put_signal\(/,/^}/ s/iris_wg_barrier\(wg\);//'
mutant "a bulk put that adds without a barrier" signals wg/wg.h \
    '/void iris_wg_put_signal_add\(/,/^}/ s/iris_wg_barrier\(wg\);//'
mutant "a tile that is put and signals without a barrier" signals wg/tile.h \
    '/void iris_wg_tile_put_signal\(/,/^}/ s/iris_wg_barrier\(wg\);//'
mutant "a tile that is put and adds without a barrier" signals wg/tile.h \
    '/void iris_wg_tile_put_signal_add\(/,/^}/ s/iris_wg_barrier\(wg\);//'
mutant "a workgroup barrier that waits for no stores" barriers core/atomic.h \
    '/void iris_d_wg_barrier\(/,/^}/ s/__asm__ volatile\(IRIS_D_WAIT_MEMORY ::: "memory"\);//'
mutant "a flush of sources that waits for no lane" bulk core/atomic.h \
    '/void iris_d_wg_read_barrier\(/,/^}/ s/__builtin_amdgcn_s_barrier\(\);//'
mutant "a flush of sources that waits for stores" bulk wg/wg.h \
    's/iris_d_wg_read_barrier\(\);/iris_d_wg_barrier();/'

# Words and their scopes.
mutant "a store that is no atomic" bits core/atomic.h \
    's/#define IRIS_D_OP_STORE\(.*/#define IRIS_D_OP_STORE(order, scope) *p = value/'
mutant "a store that says only nontemporal" bits core/atomic.h \
    's/#define IRIS_D_OP_STORE\(.*/#define IRIS_D_OP_STORE(order, scope) __builtin_nontemporal_store(value, p)/'
mutant "a load at workgroup scope" bits core/atomic.h \
    's/(#define IRIS_D_LOAD\(p, order, scope\) __hip_atomic_load\(p, order, ).*/\1IRIS_D_WG)/'
mutant "additions at agent scope" bits core/atomic.h \
    '/#define IRIS_D_OP_ADD\(/,+1 s/value, order, scope\)/value, order, IRIS_D_AGENT)/'
mutant "exchanges at agent scope" bits core/atomic.h \
    '/#define IRIS_D_OP_XCHG\(/,+1 s/value, order, scope\)/value, order, IRIS_D_AGENT)/'
mutant "compare-and-swap at workgroup scope" bits core/atomic.h \
    's/IRIS_D_ORDER\((ACQUIRE|RELAXED)\), scope\)$/IRIS_D_ORDER(\1), IRIS_D_WG)/'
mutant "float updates at agent scope" bits core/amo.h \
    '/uint64_t iris_d_update\(/,/^}/ s/how.order = iris_d_released\(how.order\);.*/&\n how.order.scope = IRIS_SCOPE_AGENT;/'
mutant "parts of a word at the scope of the caller" bits core/word.h \
    's/how.scope = IRIS_SCOPE_SYSTEM;//'
mutant "volatile accesses at workgroup scope" bits core/rma.h \
    '/iris_load_volatile_##name/,/^IRIS_TYPES/ s/IRIS_SCOPE_SYSTEM/IRIS_SCOPE_WG/'
mutant "volatile stores that are nontemporal only" bits core/rma.h \
    's/iris_d_store\(to, sizeof\(c_type\), bits, */iris_d_store_hint(to, sizeof(c_type), bits, IRIS_CACHE_STREAMING); (void)(/'
mutant "a volatile hint that is nontemporal only" bits core/atomic.h \
    '/#define IRIS_D_HINTED_LOAD\(p, hint\)/,/^#define IRIS_D_HINTED_STORE/ s/__hip_atomic_load\(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM\)/__builtin_nontemporal_load(p)/'
mutant "writing through at agent scope" bits core/atomic.h \
    '/__hip_atomic_store\(p, v, __ATOMIC_RELAXED,/,+1 s/SCOPE_SYSTEM/SCOPE_AGENT/'

# What acquires.
mutant "loads that acquire nothing" orders core/order.h \
    's/IRIS_D_SCOPED\(OP, ACQUIRE, how\)/IRIS_D_SCOPED(OP, RELAXED, how)/'
mutant "a signal that is fetched relaxed" orders core/signal.h \
    's/IRIS_ACQUIRE,$/IRIS_RELAXED,/'
mutant "waits that acquire nothing" waits core/wait.h \
    '/void iris_d_polled\(/,/^}/ s/iris_d_fence\(.*//'
mutant "waits that acquire at agent scope" waits core/wait.h \
    '/void iris_d_polled\(/,/^}/ s/SCOPE_SYSTEM/SCOPE_AGENT/'
mutant "polls at agent scope" waits core/wait.h \
    '/uint64_t iris_d_peek\(/,/^}/ s/SCOPE_SYSTEM/SCOPE_AGENT/'
mutant "polls at workgroup scope" waits core/wait.h \
    '/uint64_t iris_d_peek\(/,/^}/ s/SCOPE_SYSTEM/SCOPE_WG/'
mutant "polls that acquire each time" waits core/wait.h \
    '/^#if IRIS_ON_HIP/,/^#else/ s/IRIS_D_POLL IRIS_RELAXED/IRIS_D_POLL IRIS_ACQUIRE/'
mutant "waits that do not rest" waits core/atomic.h \
    's/__builtin_amdgcn_s_sleep\(1\);//'
mutant "a report that is not released" waits core/wait.h \
    's/release = iris_d_order\(IRIS_RELEASE,/release = iris_d_order(IRIS_RELAXED,/'
mutant "waits for any of several signals that acquire nothing" waits core/signals.h \
    's/iris_d_reached\(&set.signals\[i\], condition, &seen\)/iris_d_holds(condition, seen = iris_d_peek(\&set.signals[i], condition.kind))/'
mutant "waits for any of several signals that poll at agent scope" waits core/signals.h \
    's/iris_d_reached\(&set.signals\[i\], condition, &seen\)/iris_d_holds(condition, seen = iris_d_load(iris_d_global((uintptr_t)\&set.signals[i]), 8, iris_d_order(IRIS_RELAXED, IRIS_SCOPE_AGENT))) \&\& (iris_d_polled(), 1)/'
mutant "waits for any of several signals that do not rest" waits core/signals.h \
    's/iris_d_wait_poll\(dev, &wait\);//'
mutant "waits for any of several signals that do not look again" waits core/signals.h \
    's/found = iris_d_scan\(dev, set, condition, indices_p\);$/found = 1;/'
mutant "waits for all of several signals that acquire nothing" waits core/signals.h \
    's/\(void\)iris_wait_until_u64\(dev, &signals\[i\], cmp, value\);/while (!iris_d_holds(iris_d_condition(IRIS_D_KIND_u64, cmp, value), iris_d_peek(\&signals[i], IRIS_D_KIND_u64))) { iris_d_pause(); }/'

# The barrier between ranks.
mutant "a rank barrier that announces at workgroup scope" ranks wg/barrier.h \
    's/IRIS_D_AHEAD, IRIS_SCOPE_SYSTEM/IRIS_D_AHEAD, IRIS_SCOPE_WG/'
mutant "a rank barrier that announces at agent scope" ranks wg/barrier.h \
    's/IRIS_D_AHEAD, IRIS_SCOPE_SYSTEM/IRIS_D_AHEAD, IRIS_SCOPE_AGENT/'
mutant "a rank barrier that releases at agent scope" ranks wg/barrier.h \
    's/IRIS_RELEASE, IRIS_SCOPE_SYSTEM\)\);$/IRIS_RELEASE, IRIS_SCOPE_AGENT));/'
mutant "a rank barrier that releases nothing" ranks wg/barrier.h \
    's/iris_d_release_ahead\(\); .*//'
mutant "a rank barrier that releases behind its announcement" ranks wg/barrier.h \
    's/iris_d_release_ahead\(\); .*//; s/^ *arrived = iris_d_condition.*/iris_d_release_ahead();\n&/'
mutant "a rank barrier that does not wait for its lanes" ranks wg/barrier.h \
    '/void iris_dev_barrier\(/,/count = / s/iris_wg_barrier\(wg\);//'
mutant "a rank barrier that lets its lanes go" ranks wg/barrier.h \
    '/IRIS_D_CALL\(after_barrier/,/^}/ s/iris_wg_barrier\(wg\);//'

# Speed, and what the hardware does in silence.
mutant "bulk copies without rounds" bulk core/target_hip.h \
    's/IRIS_D_BULK_DEPTH 8/IRIS_D_BULK_DEPTH 0/'
mutant "bulk copies whose stores wait for the last loads" bulk wg/wg.h \
    's/iris_d_wg_load\(odd, f \+ round, step, depth\);//; s/^( *)iris_d_wg_store\(t ([-+]) round, odd/\1iris_d_wg_load(odd, f \2 round, step, depth);\n&/'
mutant "bulk copies of 8 bytes" bulk wg/wg.h \
    's/skew == 0 +\? 4$/skew == 0 ? 3/'
mutant "packets that stay in a cache" ccl core/target_hip.h \
    's/" sc0 sc1"/""/'
mutant "packets in two stores" ccl core/vector.h \
    '/void iris_d_store_pair\(/,/^}/ s/#elif IRIS_ON_HIP/#elif 0/'
mutant "reductions by less than 16 bytes" ccl kernels/ccl_combine.h \
    '/void iris_d_ccl_store\(/,/^}/ s/iris_d_store_wide.*//'
mutant "products without matrix instructions" products core/target_hip.h \
    's/IRIS_D_HAS_MMA 1/IRIS_D_HAS_MMA 0/'
mutant "matrix instructions before all lanes have shared" products \
    wg/product_gpu.h '/stage.b, iris_tile_transposed/,/^}/ s/iris_d_wg_barrier\(\);//'
mutant "lanes that share while others multiply" products wg/product_gpu.h \
    's/iris_d_wg_barrier\(\); .. no lane reads.*//'
mutant "tiles that are shared element by element" products wg/product_gpu.h \
    's/if \(iris_d_stage_wide\(&tile\)\) \{/if (0) {/'
mutant "products in order that are contracted" fma wg/product_gpu.h \
    's/sum\[i\]\[j\] \+= iris_d_product_f32\(/sum[i][j] = iris_d_fused_f32(sum[i][j], /'
mutant "sums that are no registers" private wg/product_gpu.h \
    's/float sum\[4\]\[4\];/& __asm__ volatile("" : : "v"((float *)sum) : "memory");/'
mutant "accesses that may be of any memory" accesses core/atomic.h \
    's/return \(void \*\)\(__attribute__\(\(address_space\(1\)\)\) void \*\)address;/return (void *)address;/'

# The same of the other family, whose stores have no bits to tell scopes by.
gpu=gfx90a
mutant "no edit" none core/wait.h ""
mutant "no write-back before a system release" orders core/atomic.h \
    's/__builtin_amdgcn_fence\(__ATOMIC_RELEASE, ""\)/(void)0/'
mutant "a signal that is set relaxed" signals core/signal.h \
    '/void iris_signal_set\(/,/^}/ s/IRIS_RELEASE/IRIS_RELAXED/'
mutant "a bulk put that signals without a barrier" signals wg/wg.h \
    '/void iris_wg_put_signal\(/,/^}/ s/iris_wg_barrier\(wg\);//'
mutant "waits that acquire at agent scope" waits core/wait.h \
    '/void iris_d_polled\(/,/^}/ s/SCOPE_SYSTEM/SCOPE_AGENT/'
mutant "polls at workgroup scope" waits core/wait.h \
    '/uint64_t iris_d_peek\(/,/^}/ s/SCOPE_SYSTEM/SCOPE_WG/'
mutant "a rank barrier that releases nothing" ranks wg/barrier.h \
    's/iris_d_release_ahead\(\); .*//'

. "$srcdir/tests/amd/library_mutants.sh"

amd_finish
echo "$amd_count of $listed tried, $amd_failed failed"
[ $amd_failed = 0 ]
