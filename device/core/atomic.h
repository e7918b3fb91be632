/* SPDX-License-Identifier: MIT
 *
 * Atomics on 1, 2, 4 and 8 byte words with order and scope as arguments, fences,
 * barriers and wide copies. half.h, mma.h and vector.h have builtins, too; no
 * other file of device/ has builtins, intrinsics or assembly.
 */
#ifndef IRIS_DEVICE_ATOMIC_H
#define IRIS_DEVICE_ATOMIC_H

#include <iris/types.h>
#include <iris/device/core/compat.h>
#include <iris/device/core/order.h>

#if IRIS_ON_CPU
#include <iris/device/watch/cpu.h>
#endif

/* Words that alias any type: a kernel's accesses stay in order with ours. */
typedef uint8_t iris_d_u8_t __attribute__((may_alias));
typedef uint16_t iris_d_u16_t __attribute__((may_alias));
typedef uint32_t iris_d_u32_t __attribute__((may_alias));
typedef uint64_t iris_d_u64_t __attribute__((may_alias));

/* Does the release part of an access or fence on targets where Iris makes it
 * itself. Returns the order that is left for the access. LLVM before 22 may
 * leave out the wait between the write-back of caches and the store that
 * announces it (llvm-project pull request 178316). On AMD, therefore, a release
 * wider than a workgroup has three parts: a fence, a wait that no optimisation
 * removes, and an access without release. */
IRIS_DEVICE iris_d_order_t iris_d_released(iris_d_order_t how)
{
#if IRIS_ON_HIP
    if (iris_d_releases(how) && how.scope != IRIS_SCOPE_WG) {
        if (how.scope == IRIS_SCOPE_AGENT) {
            __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
        } else {
            __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
        }
        __asm__ volatile(IRIS_D_WAIT_MEMORY ::: "memory");
        how.sem = iris_d_acquires(how) ? IRIS_ACQUIRE : IRIS_RELAXED;
    }
#endif
    return how;
}

/* ---- Names of orders and scopes by target -----------------------------------
 * Order and scope are constants here; order.h picks them. */
/* clang-format off */
#if IRIS_ON_CPU
#define IRIS_D_ORDER(order) __ATOMIC_##order
#define IRIS_D_LOAD(p, order, scope) __atomic_load_n(p, order)
#define IRIS_D_STORE(p, v, order, scope) __atomic_store_n(p, v, order)
#define IRIS_D_XCHG(p, v, order, scope) __atomic_exchange_n(p, v, order)
#define IRIS_D_CAS(p, seen, v, order, failed, scope)                           \
    __atomic_compare_exchange_n(p, seen, v, 0, order, failed)
#define IRIS_D_FETCH(verb, p, v, order, scope)                                 \
    __atomic_fetch_##verb(p, v, order)
#elif IRIS_ON_HIP
#define IRIS_D_ORDER(order) __ATOMIC_##order
#define IRIS_D_WG __HIP_MEMORY_SCOPE_WORKGROUP
#define IRIS_D_AGENT __HIP_MEMORY_SCOPE_AGENT
#define IRIS_D_SYSTEM __HIP_MEMORY_SCOPE_SYSTEM
#define IRIS_D_LOAD(p, order, scope) __hip_atomic_load(p, order, scope)
#define IRIS_D_STORE(p, v, order, scope) __hip_atomic_store(p, v, order, scope)
#define IRIS_D_XCHG(p, v, order, scope)                                        \
    __hip_atomic_exchange(p, v, order, scope)
#define IRIS_D_CAS(p, seen, v, order, failed, scope)                           \
    __hip_atomic_compare_exchange_strong(p, seen, v, order, failed, scope)
#define IRIS_D_FETCH(verb, p, v, order, scope)                                 \
    __hip_atomic_fetch_##verb(p, v, order, scope)
#define IRIS_D_FETCH_SIGNED(verb, p, v, order, scope)                          \
    (sizeof(*(p)) == 8 ? (uint64_t)__hip_atomic_fetch_##verb(                  \
                             (int64_t *)(p), (int64_t)(v), order, scope)       \
                       : (uint32_t)__hip_atomic_fetch_##verb(                  \
                             (int32_t *)(p), (int32_t)(v), order, scope))
#else
#define IRIS_D_ORDER(order) __NV_ATOMIC_##order
#define IRIS_D_WG __NV_THREAD_SCOPE_BLOCK
#define IRIS_D_AGENT __NV_THREAD_SCOPE_DEVICE
#define IRIS_D_SYSTEM __NV_THREAD_SCOPE_SYSTEM
#define IRIS_D_LOAD(p, order, scope) __nv_atomic_load_n(p, order, scope)
#define IRIS_D_STORE(p, v, order, scope)                                       \
    __nv_atomic_store_n(p, v, order, scope)
#define IRIS_D_XCHG(p, v, order, scope)                                        \
    __nv_atomic_exchange_n(p, v, order, scope)
#define IRIS_D_CAS(p, seen, v, order, failed, scope)                           \
    __nv_atomic_compare_exchange_n(p, seen, v, false, order, failed, scope)
#define IRIS_D_FETCH(verb, p, v, order, scope)                                 \
    __nv_atomic_fetch_##verb(p, v, order, scope)
#define IRIS_D_FETCH_SIGNED(verb, p, v, order, scope)                          \
    (sizeof(*(p)) == 8 ? (uint64_t)__nv_atomic_fetch_##verb(                   \
                             (int64_t *)(p), (int64_t)(v), order, scope)       \
                       : (uint32_t)__nv_atomic_fetch_##verb(                   \
                             (int32_t *)(p), (int32_t)(v), order, scope))
#endif

/* ---- One word of each width ------------------------------------------------
 * For 32 bits these are iris_d_load_u32, iris_d_store_u32, iris_d_xchg_u32,
 * iris_d_cas_u32, iris_d_add_u32, iris_d_and_u32, iris_d_or_u32,
 * iris_d_xor_u32. Each returns the old value. A compare-and-swap that fails
 * keeps the acquire part of its order. */
#define IRIS_D_OP_LOAD(order, scope) result = IRIS_D_LOAD(p, order, scope)
#define IRIS_D_OP_STORE(order, scope) IRIS_D_STORE(p, value, order, scope)
#define IRIS_D_OP_XCHG(order, scope)                                           \
    result = IRIS_D_XCHG(p, value, order, scope)
#define IRIS_D_OP_CAS_HARD(order, scope) /* acquires if it fails, too */       \
    (void)IRIS_D_CAS(p, &seen, value, order, IRIS_D_ORDER(ACQUIRE), scope)
#define IRIS_D_OP_CAS_SOFT(order, scope)                                       \
    (void)IRIS_D_CAS(p, &seen, value, order, IRIS_D_ORDER(RELAXED), scope)
#define IRIS_D_OP_ADD(order, scope)                                            \
    result = IRIS_D_FETCH(add, p, value, order, scope)
#define IRIS_D_OP_AND(order, scope)                                            \
    result = IRIS_D_FETCH(and, p, value, order, scope)
#define IRIS_D_OP_OR(order, scope)                                             \
    result = IRIS_D_FETCH(or, p, value, order, scope)
#define IRIS_D_OP_XOR(order, scope)                                            \
    result = IRIS_D_FETCH(xor, p, value, order, scope)
#define IRIS_D_OP_UMIN(order, scope)                                           \
    result = IRIS_D_FETCH(min, p, value, order, scope)
#define IRIS_D_OP_UMAX(order, scope)                                           \
    result = IRIS_D_FETCH(max, p, value, order, scope)
#define IRIS_D_OP_SMIN(order, scope)                                           \
    result = IRIS_D_FETCH_SIGNED(min, p, value, order, scope)
#define IRIS_D_OP_SMAX(order, scope)                                           \
    result = IRIS_D_FETCH_SIGNED(max, p, value, order, scope)

#define IRIS_D_ACCESSES(bits)                                                  \
    IRIS_DEVICE uint##bits##_t iris_d_load_u##bits(                            \
        iris_d_u##bits##_t *p, iris_d_order_t how)                             \
    {                                                                          \
        uint##bits##_t result;                                                 \
        IRIS_D_LOADING(IRIS_D_OP_LOAD, how)                                    \
        return result;                                                         \
    }                                                                          \
    IRIS_DEVICE void iris_d_store_u##bits(                                     \
        iris_d_u##bits##_t *p, uint##bits##_t value, iris_d_order_t how)       \
    {                                                                          \
        how = iris_d_released(how);                                            \
        IRIS_D_STORING(IRIS_D_OP_STORE, how)                                   \
    }

#define IRIS_D_UPDATE(bits, verb, OP)                                          \
    IRIS_DEVICE uint##bits##_t iris_d_##verb##_u##bits(                        \
        iris_d_u##bits##_t *p, uint##bits##_t value, iris_d_order_t how)       \
    {                                                                          \
        uint##bits##_t result;                                                 \
        how = iris_d_released(how);                                            \
        IRIS_D_UPDATING(OP, how)                                               \
        return result;                                                         \
    }

#define IRIS_D_UPDATES(bits)                                                   \
    IRIS_D_UPDATE(bits, xchg, IRIS_D_OP_XCHG)                                  \
    IRIS_D_UPDATE(bits, add, IRIS_D_OP_ADD)                                    \
    IRIS_D_UPDATE(bits, and, IRIS_D_OP_AND)                                    \
    IRIS_D_UPDATE(bits, or, IRIS_D_OP_OR)                                      \
    IRIS_D_UPDATE(bits, xor, IRIS_D_OP_XOR)                                    \
    IRIS_DEVICE uint##bits##_t iris_d_cas_u##bits(                             \
        iris_d_u##bits##_t *p, uint##bits##_t expected, uint##bits##_t value,  \
        iris_d_order_t how)                                                    \
    {                                                                          \
        iris_d_u##bits##_t seen = expected;                                    \
        how = iris_d_released(how);                                            \
        if (iris_d_acquires(how) && iris_d_releases(how)) {                    \
            IRIS_D_RELEASING(IRIS_D_OP_CAS_HARD, ACQ_REL, how);                \
        } else if (iris_d_acquires(how)) {                                     \
            IRIS_D_SCOPED(IRIS_D_OP_CAS_HARD, ACQUIRE, how);                   \
        } else {                                                               \
            IRIS_D_STORING(IRIS_D_OP_CAS_SOFT, how)                            \
        }                                                                      \
        return seen;                                                           \
    }
/* clang-format on */

IRIS_D_ACCESSES(8)
IRIS_D_ACCESSES(16)
IRIS_D_ACCESSES(32)
IRIS_D_ACCESSES(64)
IRIS_D_UPDATES(32)
IRIS_D_UPDATES(64)

#if IRIS_ON_CPU /* GPUs have no updates this small; see word.h */
#define IRIS_D_CALLER() __builtin_return_address(0) /* the caller's address */
IRIS_D_UPDATES(8)
IRIS_D_UPDATES(16)
#else /* and CPUs no such updates */
IRIS_D_UPDATE(32, umin, IRIS_D_OP_UMIN)
IRIS_D_UPDATE(32, umax, IRIS_D_OP_UMAX)
IRIS_D_UPDATE(32, smin, IRIS_D_OP_SMIN)
IRIS_D_UPDATE(32, smax, IRIS_D_OP_SMAX)
IRIS_D_UPDATE(64, umin, IRIS_D_OP_UMIN)
IRIS_D_UPDATE(64, umax, IRIS_D_OP_UMAX)
IRIS_D_UPDATE(64, smin, IRIS_D_OP_SMIN)
IRIS_D_UPDATE(64, smax, IRIS_D_OP_SMAX)
#endif

/* ---- Fences and barriers ------------------------------------------------ */

#if IRIS_TSAN && IRIS_ON_CPU
/* ThreadSanitizer does not model fences. An update of one word that all threads
 * share orders at least as much. The symbol is weak, so that all files of a
 * program share it. */
__attribute__((weak)) unsigned iris_d_fence_word;

IRIS_DEVICE void iris_d_fence(iris_d_order_t how)
{
    (void)how;
    (void)__atomic_fetch_add(&iris_d_fence_word, 1u, __ATOMIC_ACQ_REL);
}
#else
/* clang-format off */
#if IRIS_ON_CPU
#define IRIS_D_OP_FENCE(order, scope) __atomic_thread_fence(order)
#else /* here scopes have other names, on NVIDIA orders as well */
#undef IRIS_D_WG
#undef IRIS_D_AGENT
#undef IRIS_D_SYSTEM
#if IRIS_ON_HIP
#define IRIS_D_WG "workgroup"
#define IRIS_D_AGENT "agent"
#define IRIS_D_SYSTEM ""
#define IRIS_D_OP_FENCE(order, scope) __builtin_amdgcn_fence(order, scope)
#else /* nvcc 13.0's builtin makes slower, sequentially consistent fences */
#undef IRIS_D_ORDER
#define IRIS_D_ORDER(order) IRIS_D_FENCE_##order
#define IRIS_D_FENCE_ACQ_REL "fence.acq_rel"
#if IRIS_D_HALF_FENCES
#define IRIS_D_FENCE_ACQUIRE "fence.acquire"
#define IRIS_D_FENCE_RELEASE "fence.release"
#else
#define IRIS_D_FENCE_ACQUIRE IRIS_D_FENCE_ACQ_REL
#define IRIS_D_FENCE_RELEASE IRIS_D_FENCE_ACQ_REL
#endif
#define IRIS_D_WG ".cta;"
#define IRIS_D_AGENT ".gpu;"
#define IRIS_D_SYSTEM ".sys;"
#define IRIS_D_OP_FENCE(order, scope)                                          \
    __asm__ volatile(order scope ::: "memory")
#endif
#endif
/* clang-format on */

IRIS_DEVICE void iris_d_fence(iris_d_order_t how)
{
    how = iris_d_released(how);
    if (iris_d_acquires(how) && iris_d_releases(how)) {
        IRIS_D_RELEASING(IRIS_D_OP_FENCE, ACQ_REL, how);
    } else if (iris_d_acquires(how)) {
        IRIS_D_SCOPED(IRIS_D_OP_FENCE, ACQUIRE, how);
    } else if (iris_d_releases(how)) {
        IRIS_D_RELEASING(IRIS_D_OP_FENCE, RELEASE, how);
    }
}
#endif

/* Waits for all lanes of the workgroup. All lanes then see each other's earlier
 * accesses. On AMD the barrier alone waits for no stores: without vmcnt(0) in
 * each wavefront, a flag that one lane releases at system scope afterwards
 * could overtake the other wavefronts' stores to a peer. */
IRIS_DEVICE void iris_d_wg_barrier(void)
{
#if IRIS_ON_HIP
    __asm__ volatile(IRIS_D_WAIT_MEMORY ::: "memory");
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#elif IRIS_ON_CUDA
    __syncthreads();
#endif
}

/* Waits until all lanes of the workgroup have read the sources of their earlier
 * copies: a store needs the value, so its load is complete. On AMD the stores may
 * still be under way. */
IRIS_DEVICE void iris_d_wg_read_barrier(void)
{
#if IRIS_ON_HIP
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* for the compiler alone */
    __builtin_amdgcn_s_barrier();
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
#elif IRIS_ON_CUDA
    __syncthreads();
#endif
}

/* Returns 0, which the compiler can compute only behind the preceding fence.
 * Added to a loaded value, it keeps the wait for the load behind the fence.
 * ptxas moves arithmetic up past fences, but moves nothing past a read of the
 * clock. The result is the clock's highest bit. */
IRIS_DEVICE uint64_t iris_d_zero_behind_fence(void)
{
#if IRIS_ON_CUDA
    uint64_t now;

    __asm__ volatile("mov.u64 %0, %%clock64;" : "=l"(now) : : "memory");
    return now >> 63;
#else
    return 0;
#endif
}

#if !IRIS_ON_CPU
/* Ticks of the device's clock, which runs at a constant rate: nanoseconds on
 * NVIDIA, 100 MHz on AMD Instinct. */
IRIS_DEVICE uint64_t iris_d_clock(void)
{
#if IRIS_ON_HIP && defined(__gfx1250__)
    return __builtin_amdgcn_s_sendmsg_rtnl(0x83);
#elif IRIS_ON_HIP
    return __builtin_amdgcn_s_memrealtime();
#else
    uint64_t now;

    __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#endif
}

/* Ends this lane in the middle of the kernel, on AMD its whole wavefront. Later
 * barriers do not count lanes that have ended. Compilers for AMD must not know
 * that the lane ends here: they would let the other lanes run on first. */
IRIS_DEVICE void iris_d_end_lane(void)
{
#if IRIS_ON_HIP
    __asm__ volatile("s_endpgm" ::: "memory");
#else
    __asm__ volatile("exit;" ::: "memory");
    __builtin_unreachable();
#endif
}
#endif

/* Rests a moment in a loop that waits. */
IRIS_DEVICE void iris_d_pause(void)
{
#if IRIS_ON_HIP
    __builtin_amdgcn_s_sleep(1);
#elif IRIS_ON_X86 && IRIS_ON_CPU
    __builtin_ia32_pause();
#elif IRIS_ON_ARM64 && IRIS_ON_CPU
    __asm__ volatile("yield");
#endif
}

/* ---- Where this lane is; on the CPU a workgroup is one lane ---------------
 */

/* clang-format off */
#if IRIS_ON_HIP
IRIS_DEVICE uint32_t iris_d_lane(void)
{ return __builtin_amdgcn_workitem_id_x(); }
IRIS_DEVICE uint32_t iris_d_num_lanes(void)
{ return __builtin_amdgcn_workgroup_size_x(); }
IRIS_DEVICE uint32_t iris_d_wg_id(void)
{ return __builtin_amdgcn_workgroup_id_x(); }
IRIS_DEVICE uint32_t iris_d_num_wgs(void)
{ return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(); }
IRIS_DEVICE uint32_t iris_d_cu_id(void)
{ return __builtin_amdgcn_s_getreg(IRIS_D_CU_ID); }
/* XCC_ID: 4 bits. */
IRIS_DEVICE uint32_t iris_d_xcc_id(void)
{ return IRIS_D_HAS_XCC ? __builtin_amdgcn_s_getreg(20 | 3 << 11) : 0; }
#elif IRIS_ON_CUDA
IRIS_DEVICE uint32_t iris_d_lane(void) { return threadIdx.x; }
IRIS_DEVICE uint32_t iris_d_num_lanes(void) { return blockDim.x; }
IRIS_DEVICE uint32_t iris_d_wg_id(void) { return blockIdx.x; }
IRIS_DEVICE uint32_t iris_d_num_wgs(void) { return gridDim.x; }
IRIS_DEVICE uint32_t iris_d_xcc_id(void) { return 0; }
IRIS_DEVICE uint32_t iris_d_cu_id(void)
{
    uint32_t id;
    __asm__ volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}
#else
IRIS_DEVICE uint32_t iris_d_lane(void) { return 0; }
IRIS_DEVICE uint32_t iris_d_num_lanes(void) { return 1; }
IRIS_DEVICE uint32_t iris_d_xcc_id(void) { return 0; }
IRIS_DEVICE uint32_t iris_d_cu_id(void) { return 0; }
#endif
/* clang-format on */

/* ---- Pointers, hints, wide copies ---------------------------------------- */

/* The pointer at an address, marked for the compiler as global memory, so that
 * it emits global_* instead of flat_*. (The compiler would remove a cast to the
 * address space and back; it does not remove this.) */
IRIS_DEVICE void *iris_d_global(uintptr_t address)
{
#if IRIS_ON_HIP
    return (void *)(__attribute__((address_space(1))) void *)address;
#elif IRIS_ON_CUDA
    void *ptr = (void *)address;

    __builtin_assume(__isGlobal(ptr));
    return ptr;
#else
    return (void *)address;
#endif
}

/* Loads a word that nobody writes while the kernel runs. Compilers may load it
 * once, ahead of the kernel's stores and of calls to observers; without this,
 * no lane loop is vectorised. On the CPU it is such a call. */
#if IRIS_ON_CPU
IRIS_CPU_CONST int64_t iris_d_load_constant(const int64_t *ptr);
IRIS_CPU_CONST int64_t iris_d_load_constant(const int64_t *ptr)
{
    return *ptr;
}
#else
IRIS_DEVICE int64_t iris_d_load_constant(const int64_t *ptr)
{
#if IRIS_ON_HIP
    return *(const __attribute__((address_space(4))) int64_t *)(uintptr_t)ptr;
#else
    /* Not volatile: the compiler moves it out of loops, past fences too. It
     * does not do so with __ldg(). */
    int64_t word;

    __asm__("ld.global.nc.b64 %0, [%1];"
            : "=l"(word)
            : "l"(__cvta_generic_to_global(ptr)));
    return word;
#endif
}
#endif

/* One plain word with a cache hint, for word.h. The CPU ignores hints: x86's
 * non-temporal stores would not be ordered by a later release. If an atomic of
 * wider scope bypasses a cache, a relaxed one serves as the hint. */
/* clang-format off */
#if IRIS_ON_CUDA
#define IRIS_D_HINTED_LOAD(p, hint)                                            \
    ((hint) == IRIS_CACHE_ALL         ? __ldca(p)                              \
     : (hint) == IRIS_CACHE_GLOBAL    ? __ldcg(p)                              \
     : (hint) == IRIS_CACHE_STREAMING ? __ldcs(p)                              \
     : (hint) == IRIS_CACHE_VOLATILE  ? __ldcv(p)                              \
                                      : *(p))
#define IRIS_D_HINTED_STORE(p, v, hint)                                        \
    ((hint) == IRIS_CACHE_WRITE_BACK      ? __stwb(p, v)                       \
     : (hint) == IRIS_CACHE_GLOBAL        ? __stcg(p, v)                       \
     : (hint) == IRIS_CACHE_STREAMING     ? __stcs(p, v)                       \
     : (hint) == IRIS_CACHE_WRITE_THROUGH ? __stwt(p, v)                       \
                                          : (void)(*(p) = (v)))
#elif IRIS_ON_HIP
#define IRIS_D_HINTED_LOAD(p, hint)                                            \
    ((hint) == IRIS_CACHE_STREAMING ? __builtin_nontemporal_load(p)            \
     : (hint) == IRIS_CACHE_GLOBAL                                             \
         ? __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)    \
     : (hint) == IRIS_CACHE_VOLATILE                                           \
         ? __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM)   \
         : *(p))
#define IRIS_D_HINTED_STORE(p, v, hint)                                        \
    ((hint) == IRIS_CACHE_STREAMING ? __builtin_nontemporal_store(v, p)        \
     : (hint) == IRIS_CACHE_WRITE_THROUGH                                      \
         ? __hip_atomic_store(p, v, __ATOMIC_RELAXED,                          \
                              __HIP_MEMORY_SCOPE_SYSTEM)                       \
         : (void)(*(p) = (v)))
#else
#define IRIS_D_HINTED_LOAD(p, hint) ((void)(hint), *(p))
#define IRIS_D_HINTED_STORE(p, v, hint) ((void)(hint), (void)(*(p) = (v)))
#endif
/* clang-format on */

/* The widest word that one access moves, aligned to its size. */
#if IRIS_ON_CUDA
typedef uint4 iris_d_u128_t;
#else
typedef uint32_t iris_d_u128_t __attribute__((vector_size(16), may_alias));
#endif

#if IRIS_ON_CPU
/* The ranges may overlap. */
IRIS_DEVICE void iris_d_copy_bytes(void *to, const void *from, size_t bytes)
{
    (void)__builtin_memmove(to, from, bytes);
}
#endif

#undef IRIS_D_ORDER
#undef IRIS_D_LOAD
#undef IRIS_D_STORE
#undef IRIS_D_XCHG
#undef IRIS_D_CAS
#undef IRIS_D_FETCH
#undef IRIS_D_FETCH_SIGNED
#undef IRIS_D_WG
#undef IRIS_D_AGENT
#undef IRIS_D_SYSTEM
#undef IRIS_D_SCOPED
#undef IRIS_D_RELEASING
#undef IRIS_D_LOADING
#undef IRIS_D_STORING
#undef IRIS_D_UPDATING
#undef IRIS_D_OP_LOAD
#undef IRIS_D_OP_STORE
#undef IRIS_D_OP_XCHG
#undef IRIS_D_OP_CAS_HARD
#undef IRIS_D_OP_CAS_SOFT
#undef IRIS_D_OP_ADD
#undef IRIS_D_OP_AND
#undef IRIS_D_OP_OR
#undef IRIS_D_OP_XOR
#undef IRIS_D_OP_UMIN
#undef IRIS_D_OP_UMAX
#undef IRIS_D_OP_SMIN
#undef IRIS_D_OP_SMAX
#undef IRIS_D_ACCESSES
#undef IRIS_D_UPDATE
#undef IRIS_D_UPDATES
#undef IRIS_D_OP_FENCE
#undef IRIS_D_FENCE_ACQ_REL
#undef IRIS_D_FENCE_ACQUIRE
#undef IRIS_D_FENCE_RELEASE

#endif /* IRIS_DEVICE_ATOMIC_H */
