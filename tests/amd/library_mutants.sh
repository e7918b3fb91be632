# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
#
# Of amd_mutants.sh those that plant a bug in the kernels of the library, or in
# what those alone need to be right.

# In a function, from its name to its end: within FUNCTION EDIT...
within() {
    echo "/ $1\\(/,/^}/ { $2 }"
}

# The same planted for each family of GPUs: where stores have bits, and where
# they have none.
for gpu in gfx942 gfx90a; do
    mutant "a hello without a release" meet kernels/ccl_meet.h \
        "$(within iris_d_ccl_hello 's/iris_d_release_ahead\(\);.*//')"
    mutant "a hello that does not wait for its lanes" meet kernels/ccl_meet.h \
        "$(within iris_d_ccl_hello 's/iris_wg_barrier\(wg\);//')"
    mutant "a hello whose low words are constants" meet kernels/ccl_meet.h \
        's/iris_d_load_u64\(&hello\[low\], iris_d_ccl_relaxed\(\)\)/(uint64_t)iris_d_load_constant((const int64_t *)\&hello[low])/'
    mutant "a hello whose words are plain" meet kernels/ccl_meet.h \
        's/iris_d_load_u64\(&hello\[low( \+ 1)?\], iris_d_ccl_relaxed\(\)\)/hello[low\1]/'
    mutant "waits for members that acquire nothing" locks kernels/ccl_space.h \
        's/iris_d_reached\(word, condition, &seen\)/iris_d_holds(condition, seen = iris_d_peek(word, condition.kind))/'
    mutant "a goodbye without a barrier" data kernels/ccl_meet.h \
        "/ iris_d_ccl_bye_at\(iris_wg_t/,/release/ s/iris_wg_barrier\(wg\);//"
    mutant "a goodbye without a release" data kernels/ccl_meet.h \
        "$(within iris_d_ccl_bye_at 's/iris_d_release_ahead\(\);.*//')"
    mutant "a goodbye that is not waited for" data kernels/ccl_meet.h \
        "$(within iris_d_ccl_bye_at 's/iris_d_ccl_wait\(/(void)(/')"
    mutant "packets that are polled by plain loads" packets core/vector.h \
        '/ iris_d_load_pair\(/,/^}/ { s/iris_d_load_u64\(from, .*/from[0];/; s/iris_d_load_u64\(from \+ 1,$/from[1]; (void)(/ }'
    mutant "packets of which one word is polled plainly" packets core/vector.h \
        '/ iris_d_load_pair\(/,/^}/ s/iris_d_load_u64\(from \+ 1,$/from[1]; (void)(/'
    mutant "packets of which one flag is compared" packets \
        kernels/ccl_exchange.h 's/\(uint32_t\)\(high >> 32\) == [^;]+/NULL/'
    mutant "fills of 4 bytes" wide kernels/fill.h \
        's/body\[i\] = word;/((volatile iris_d_u32_t *)body)[4 * i] = (uint32_t)args->pattern[0];/'
    mutant "products that are contracted with sums" fma core/target_hip.h \
        's/#pragma clang fp contract\(off\)//'
    mutant "records that take a place without a look" records watch/record.h \
        's/if \(iris_d_record_full\(.*/if (0) {/'
done

gpu=gfx942
# Words between members.
mutant "a hello that is released at agent scope" meet kernels/ccl_meet.h \
    "$(within iris_d_ccl_hello 's/iris_d_release_ahead\(\);/iris_d_fence(iris_d_order(IRIS_RELEASE, IRIS_SCOPE_AGENT));/')"
mutant "a hello whose high words are constants" meet kernels/ccl_meet.h \
    's/iris_d_load_u64\(&hello\[low \+ 1\], iris_d_ccl_relaxed\(\)\)/(uint64_t)iris_d_load_constant((const int64_t *)\&hello[low + 1])/'
mutant "a hello whose words are read at agent scope" scopes kernels/ccl_space.h \
    "$(within iris_d_ccl_relaxed 's/SCOPE_SYSTEM/SCOPE_AGENT/')"
mutant "waits for members that poll at agent scope" scopes kernels/ccl_space.h \
    's/iris_d_reached\(word, condition, &seen\)/iris_d_holds(condition, seen = iris_d_load(iris_d_global((uintptr_t)word), iris_d_kind_bytes(condition.kind), iris_d_order(IRIS_ACQUIRE, IRIS_SCOPE_AGENT)))/'
mutant "a table of constants" meet kernels/ccl_meet.h \
    "$(within '\*iris_d_ccl_at' 's/\(uintptr_t\)table\[i\]/(uintptr_t)iris_d_load_constant((const int64_t *)\&table[i])/')"
mutant "a goodbye at workgroup scope" scopes kernels/ccl_meet.h \
    "$(within iris_d_ccl_bye_at 's/SCOPE_SYSTEM/SCOPE_WG/')"
mutant "a goodbye that is released at agent scope" data kernels/ccl_meet.h \
    "$(within iris_d_ccl_bye_at 's/iris_d_release_ahead\(\);/iris_d_fence(iris_d_order(IRIS_RELEASE, IRIS_SCOPE_AGENT));/')"
mutant "a goodbye that is released behind its word" data kernels/ccl_meet.h \
    "$(within iris_d_ccl_bye_at 's/iris_d_release_ahead\(\);.*//; s/iris_d_ccl_wait\(/iris_d_release_ahead();\n&/')"
mutant "a goodbye ahead of the data" data kernels/ccl_reduce.h \
    '/iris_d_ccl_reduction\(iris_wg_t/,/^}/ { s/iris_d_ccl_bye_at\(wg, &work.ccl, near\);//; s/^    IRIS_LANES/iris_d_ccl_bye_at(wg, \&work.ccl, near);\n&/ }'
mutant "moves without a goodbye" data kernels/ccl_move.h \
    's/iris_d_ccl_bye_at\(wg, &ccl, near\);//'
mutant "rows without a goodbye" data kernels/ccl_matrix.h \
    's/iris_d_ccl_bye\(wg, &work.ccl\);//'

# Packets.
mutant "packets that are polled at agent scope" packets core/vector.h \
    '/ iris_d_load_pair\(/,/^}/ s/SCOPE_SYSTEM/SCOPE_AGENT/'
mutant "packets that are polled at workgroup scope" packets core/vector.h \
    '/ iris_d_load_pair\(/,/^}/ s/SCOPE_SYSTEM/SCOPE_WG/'
mutant "packets that are polled by words of 4 bytes" packets core/vector.h \
    '/ iris_d_load_pair\(/,/^}/ { s/iris_d_load_u64\(from( \+ 1)?,(.*|$)/iris_d_load_u32((iris_d_u32_t *)(from\1), iris_d_ahead()) | (uint64_t)iris_d_load_u32((iris_d_u32_t *)(from\1) + 1, iris_d_ahead()) << 32; (void)(iris_d_ahead());/; s/^ +iris_d_order\(.*// }; s/^IRIS_DEVICE void iris_d_load_pair/IRIS_DEVICE iris_d_order_t iris_d_ahead(void) { return iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM); }\n&/'
mutant "packets of whose flag half is compared" packets \
    kernels/ccl_exchange.h 's/\(uint32_t\)\(high >> 32\) == ([^ ;]+)/(uint16_t)(high >> 32) == (uint16_t)(\1)/'
mutant "packets that are stored at agent scope" packets core/target_hip.h \
    's/" sc0 sc1"/" sc1"/'
gpu=gfx950
mutant "packets without cache bits" packets core/target_hip.h \
    '/Cache bits of a store/,/#define/ s/defined\(__gfx950__\)/0/'
gpu=gfx942

# Workgroups that do collectives.
for gpu in gfx942 gfx950; do
    mutant "a workgroup that sends before its lanes have stored" steps \
        wg_ccl.h 's/iris_wg_barrier\(wg\); .. other lanes. writes to .*//'
    mutant "a step that begins while another lane is in the last one" steps \
        wg_ccl.h \
        '/iris_d_ccl_one_step\(wg, &step, args\);/,/go_on/ s/iris_wg_barrier\(wg\);//'
    mutant "a workgroup's last step from a cache" steps wg_ccl.h \
        's/iris_d_load_u64\(iris_d_ccl_epoch\(ccl, 0\), iris_d_ccl_relaxed\(\)\)/*(iris_d_u64_t *)iris_d_ccl_epoch(ccl, 0)/'
    kernel=ccl_wg mutant "packets to workgroups of which one word is polled plainly" \
        packets core/vector.h \
        '/ iris_d_load_pair\(/,/^}/ s/iris_d_load_u64\(from \+ 1,$/from[1]; (void)(/'
    kernel=ccl_wg mutant "packets to workgroups that a cache may keep" packets \
        core/target_hip.h '/Cache bits of a store/,/#define/ s/defined\(__gfx9[45][02]__\)/0/g'
done
gpu=gfx942

# Lanes with several packets each.
mutant "a batch that does not look whether its packets have come" packets \
    kernels/ccl_batch.h 's/missing = half != NULL \? half : missing;/(void)half;/'
mutant "a batch that looks at one packet" steps kernels/ccl_batch.h \
    's/k < polled->slots && u < polled->range.units$/p == 0/'

# Bytes, products, records.
mutant "rows of 8 bytes at a time" wide kernels/fill.h \
    's/\*\(iris_d_u128_t \*\)to = block.words\[0\];/((volatile iris_d_u64_t *)to)[0] = block.words[0][0]; ((volatile iris_d_u64_t *)to)[1] = block.words[0][2];/'
mutant "random numbers that are stored one by one" wide kernels/random.h \
    's/if \(\(uintptr_t\)data % sizeof \*data != 0\) \{/if (1) {/'
mutant "random numbers of 8 bytes at a time" wide kernels/random.h \
    's/data\[i \* \(words \/ 4\) \+ k\] = all.wide\[k\];/((volatile uint64_t *)data)[i] = all.words[0]; /'
mutant "rows that are contracted" fma kernels/fill.h \
    's/iris_d_product_f32\(\(float\)args->step, index\)/(float)args->step * index/'
mutant "a product that is contracted" fma kernels/matmul.h \
    's/sum \+= iris_d_product_f32\(/sum = __builtin_fmaf(/; s/to_f32\(b\[\(int64_t\)k \* args->b.row\]\)\)/to_f32(b[(int64_t)k * args->b.row]), sum)/'
mutant "records whose number is read at workgroup scope" records watch/record.h \
    "$(within iris_d_record_slot 's/SCOPE_AGENT/SCOPE_WG/')"
mutant "records that take a place at system scope" records watch/record.h \
    "$(within iris_d_record_slot 's/SCOPE_AGENT/SCOPE_SYSTEM/')"
mutant "records of a full buffer" records watch/record.h \
    's/if \(slot >= iris_d_trace_word\(dev, IRIS_CONTEXT_TRACE_MAX_EVENTS\)\) \{/if (0) {/'
mutant "records whose number wraps around" records watch/record.h \
    's/if \(iris_d_record_full\(.*/if (0) {/'

# Every barrier, release, order and scope of the files, one by one.
for file in kernels/ccl_{pairs,channel} kernels/ccl_{meet,space,loose,batch,exchange} \
    wg_ccl wg_ccl_tile wg/{tile,barrier} core/{signal,wait}; do
    sweep "no barrier" $file.h 'iris_wg_barrier\(.*\);' 's/iris_wg_barrier\(.*\);//'
    # (One of them stands behind a load that the code waits for.)
    sweep "barrier ahead of stores" $file.h 'iris_wg_barrier\(.*\);' \
        's/iris_wg_barrier\(.*\);/iris_d_wg_read_barrier();/' 'has read the time'
    sweep "no release" $file.h 'iris_d_release_ahead\(\);' 's/iris_d_release_ahead\(\);//'
    sweep "release of agent's scope" $file.h 'iris_d_release_ahead\(\);' \
        's/iris_d_release_ahead\(\);/iris_d_fence(iris_d_order(IRIS_RELEASE, IRIS_SCOPE_AGENT));/'
    sweep relaxed $file.h 'IRIS_(RELEASE|ACQUIRE),' 's/IRIS_(RELEASE|ACQUIRE),/IRIS_RELAXED,/'
    sweep "agent's scope" $file.h 'IRIS_SCOPE_SYSTEM' 's/IRIS_SCOPE_SYSTEM/IRIS_SCOPE_AGENT/'
    # (No rule tells a look at the host's stop from late loads, which have that scope.)
    sweep "workgroup's scope" $file.h 'IRIS_SCOPE_SYSTEM' \
        's/IRIS_SCOPE_SYSTEM/IRIS_SCOPE_WG/' 'IRIS_SCOPE_SYSTEM\)\) != 0\)'
    sweep "word of agent's scope" $file.h 'iris_d_ccl_relaxed\(\)[,)]' \
        's/iris_d_ccl_relaxed\(\)/iris_d_order(IRIS_RELAXED, IRIS_SCOPE_AGENT)/'
done
