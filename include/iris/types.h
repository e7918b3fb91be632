/* SPDX-License-Identifier: MIT
 *
 * Plain types shared by the host API and by device code: element types, memory
 * orders, scopes, comparisons. Includes nothing but <stdint.h> and <stddef.h>.
 */
#ifndef IRIS_TYPES_H
#define IRIS_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The bits of an IEEE binary16 number. iris_f16_to_f32() and
 *  iris_f16_from_f32() convert. Same size and layout as _Float16 and __half. */
typedef struct iris_f16 {
    uint16_t bits;
} iris_f16_t;

/** The bits of a bfloat16 number. iris_bf16_to_f32() and iris_bf16_from_f32()
 *  convert. Same size and layout as __bf16 and __nv_bfloat16. */
typedef struct iris_bf16 {
    uint16_t bits;
} iris_bf16_t;

/** The bits of an 8-bit float with 4 bits of exponent and 3 of fraction: OCP's
 *  E4M3, PyTorch's float8_e4m3fn. It has no infinity. iris_f8e4m3_to_f32() and
 *  iris_f8e4m3_from_f32() convert. */
typedef struct iris_f8e4m3 {
    uint8_t bits;
} iris_f8e4m3_t;

/** The bits of an 8-bit float with 5 bits of exponent and 2 of fraction: OCP's
 *  E5M2, PyTorch's float8_e5m2. iris_f8e5m2_to_f32() and iris_f8e5m2_from_f32()
 *  convert. */
typedef struct iris_f8e5m2 {
    uint8_t bits;
} iris_f8e5m2_t;

/* The element types. Every row is X(name, c_type, arg); longer lists contain
 * the shorter ones. The lists pass `arg` on to X unchanged. */
/* clang-format off */
#define IRIS_WORD_TYPES(X, arg)                                                \
    X(i32, int32_t, arg)                                                       \
    X(u32, uint32_t, arg)                                                      \
    X(i64, int64_t, arg)                                                       \
    X(u64, uint64_t, arg)

#define IRIS_INTEGER_TYPES(X, arg)                                             \
    X(i8, int8_t, arg)                                                         \
    X(u8, uint8_t, arg)                                                        \
    X(i16, int16_t, arg)                                                       \
    X(u16, uint16_t, arg)                                                      \
    IRIS_WORD_TYPES(X, arg)

#define IRIS_FLOAT_TYPES(X, arg)                                               \
    X(f16, iris_f16_t, arg)                                                    \
    X(bf16, iris_bf16_t, arg)                                                  \
    X(f32, float, arg)                                                         \
    X(f64, double, arg)

#define IRIS_TYPES(X, arg)                                                     \
    IRIS_INTEGER_TYPES(X, arg)                                                 \
    IRIS_FLOAT_TYPES(X, arg)

/* Types of collectives and tensors only: no loads, stores and atomics. */
#define IRIS_FLOAT8_TYPES(X, arg)                                              \
    X(f8e4m3, iris_f8e4m3_t, arg)                                              \
    X(f8e5m2, iris_f8e5m2_t, arg)
/* clang-format on */

/* Element types as values, for calls that take any type: X(NAME, value, name,
 * bytes). They include each of IRIS_TYPES, under the same name. Values never
 * change meaning; later versions add new ones at the end. */
/* clang-format off */
#define IRIS_DTYPE_ROWS(X)                                                     \
    X(BOOL,        0, "bool",        1)                                        \
    X(I8,          1, "i8",          1)                                        \
    X(I16,         2, "i16",         2)                                        \
    X(I32,         3, "i32",         4)                                        \
    X(I64,         4, "i64",         8)                                        \
    X(U8,          5, "u8",          1)                                        \
    X(U16,         6, "u16",         2)                                        \
    X(U32,         7, "u32",         4)                                        \
    X(U64,         8, "u64",         8)                                        \
    X(F16,         9, "f16",         2)                                        \
    X(BF16,       10, "bf16",        2)                                        \
    X(F32,        11, "f32",         4)                                        \
    X(F64,        12, "f64",         8)                                        \
    X(COMPLEX64,  13, "complex64",   8) /* two f32: real, imaginary */         \
    X(COMPLEX128, 14, "complex128", 16) /* two f64 */                          \
    X(F8E4M3,     15, "f8e4m3",      1)                                        \
    X(F8E5M2,     16, "f8e5m2",      1)

/* Operations of reductions: X(NAME, value, name). Values never change
 * meaning. */
#define IRIS_REDUCE_OP_ROWS(X)                                                 \
    X(SUM,     0, "sum")                                                       \
    X(PRODUCT, 1, "product")                                                   \
    X(MIN,     2, "min")                                                       \
    X(MAX,     3, "max")                                                       \
    X(BAND,    4, "band") /* bitwise and, or, exclusive or: integers, bool */  \
    X(BOR,     5, "bor")                                                       \
    X(BXOR,    6, "bxor")                                                      \
    X(AVG,     7, "avg") /* the sum times 1 / members: floats, complex */
/* clang-format on */

/** IRIS_DTYPE_BOOL and so on. See iris_dtype_size(), iris_dtype_name(). */
typedef enum iris_dtype {
#define IRIS_DTYPE_ENUM(NAME, value, name, bytes) IRIS_DTYPE_##NAME = value,
    IRIS_DTYPE_ROWS(IRIS_DTYPE_ENUM)
#undef IRIS_DTYPE_ENUM
} iris_dtype_t;

/** IRIS_REDUCE_SUM and so on. */
typedef enum iris_reduce_op {
#define IRIS_REDUCE_OP_ENUM(NAME, value, name) IRIS_REDUCE_##NAME = value,
    IRIS_REDUCE_OP_ROWS(IRIS_REDUCE_OP_ENUM)
#undef IRIS_REDUCE_OP_ENUM
} iris_reduce_op_t;

/** Memory order of an atomic operation or a fence. There is no default. */
typedef enum iris_sem {
    IRIS_RELAXED = 0, /**< Atomic, orders nothing else. */
    IRIS_ACQUIRE = 1, /**< Later accesses stay after it. */
    IRIS_RELEASE = 2, /**< Earlier accesses stay before it. */
    IRIS_ACQ_REL = 3, /**< Both. */
} iris_sem_t;

/** The set of threads that an atomic operation or a fence orders memory for.
 *  There is no default. Only IRIS_SCOPE_SYSTEM reaches another rank. */
typedef enum iris_scope {
    IRIS_SCOPE_WG = 0,     /**< The lanes of one workgroup. */
    IRIS_SCOPE_AGENT = 1,  /**< All workgroups of this rank's device. */
    IRIS_SCOPE_SYSTEM = 2, /**< Every rank and the host. */
} iris_scope_t;

/** The update that iris_put_signal_on_stream() makes to its signal. */
typedef enum iris_signal_op {
    IRIS_SIGNAL_SET = 0,
    IRIS_SIGNAL_ADD = 1, /**< Atomically. */
} iris_signal_op_t;

/** Comparison of iris_wait_until() and iris_test(): (word in memory) CMP
 *  (value passed). */
typedef enum iris_cmp {
    IRIS_CMP_EQ = 0,
    IRIS_CMP_NE = 1,
    IRIS_CMP_LT = 2,
    IRIS_CMP_LE = 3,
    IRIS_CMP_GT = 4,
    IRIS_CMP_GE = 5,
} iris_cmp_t;

/** Cache hints of the _hint loads and stores. A hint never changes a value; a
 *  target without such a cache ignores it. */
typedef enum iris_cache {
    IRIS_CACHE_DEFAULT = 0,
    IRIS_CACHE_ALL = 1,           /**< Load: cache at every level (.ca). */
    IRIS_CACHE_GLOBAL = 2,        /**< Cache in the shared level only (.cg). */
    IRIS_CACHE_VOLATILE = 3,      /**< Load: do not cache (.cv). */
    IRIS_CACHE_STREAMING = 4,     /**< Used once, evict early (.cs). */
    IRIS_CACHE_WRITE_THROUGH = 5, /**< Store: write through (.wt). */
    IRIS_CACHE_WRITE_BACK = 6,    /**< Store: write back (.wb). */
} iris_cache_t;

/** One workgroup's kernel entry on the CPU; `wg` is a const iris_wg_t *. */
typedef void (*iris_cpu_entry_t)(const void *wg, const void *args);

/** Version of the interface between compiled kernels and the library: struct
 *  iris_kernel, and all data that kernels and the library pass each other. It
 *  grows with any change of those. `version` and `name` never change place. */
#define IRIS_KERNEL_VERSION 4

/** A kernel, which IRIS_KERNEL() defines and iris_launch() takes: one name, and
 *  code for each target. The pointer for a target is NULL if the program was
 *  not compiled for it. */
struct iris_kernel {
    size_t version; /**< IRIS_KERNEL_VERSION of the header it was compiled
                         with. */
    const char *name;
    size_t args_bytes;          /**< sizeof the argument struct. */
    iris_cpu_entry_t cpu_entry; /**< NULL: no CPU version. */
    const void *gpu_image; /**< GPU code that contains <name>_gpu, or NULL. */
    const void *gpu_entry; /**< hipcc's or nvcc's handle of <name>_gpu, or
                                NULL. */
};

#ifdef __cplusplus
}
#endif

#endif /* IRIS_TYPES_H */
