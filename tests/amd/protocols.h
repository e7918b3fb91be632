/* SPDX-License-Identifier: MIT
 *
 * Small kernels whose code for AMD GPUs tests/amd_code.sh reads: waits,
 * signals, barriers, bulk copies. Their names say what must be found there;
 * rules.awk knows how. The data that they are about are of 2 bytes, as nothing
 * else here, or 16. GPU only.
 */
#ifndef AMD_PROTOCOLS_H
#define AMD_PROTOCOLS_H

#include <iris/device.h>

/* A sample has those groups only that are asked for by name. */
#ifndef AMD_CODE_SAMPLE
#define AMD_waits
#define AMD_signals
#define AMD_ranks
#define AMD_bulk
#define AMD_products
#endif

struct protocol_args {
    const int64_t *context;
    void *heap;
    uint16_t *data; /* on the heap, too */
    uint64_t *signal;
    uint64_t value;
    size_t count;
    struct iris_dev_group *group;
    int peer;
    iris_cmp_t cmp;
};

/* The data behind a wait: one load that must not be early. */
#define AFTER                                                                \
    iris_store_u16(dev, args->data + lane,                                   \
                   iris_load_u16(dev, args->data + lane + 4096, args->peer), \
                   args->peer)

/* clang-format off */
#ifdef AMD_waits
/* code_wait_<type>, code_test_<type> */
#define ROW(name, c_type, arg)                                                 \
    IRIS_KERNEL(code_wait_##name, struct protocol_args)                        \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        uint32_t lane = iris_d_lane();                                         \
        iris_wait_until_##name(dev, (c_type *)args->heap + lane, args->cmp,    \
                               iris_d_value_##name(args->value));              \
        AFTER;                                                                 \
    }                                                                          \
    IRIS_KERNEL(code_test_##name, struct protocol_args)                        \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        uint32_t lane = iris_d_lane();                                         \
        if (iris_test_##name(dev, (c_type *)args->heap + lane, args->cmp,      \
                             iris_d_value_##name(args->value))) {              \
            AFTER;                                                             \
        }                                                                      \
    }
#ifdef AMD_CODE_SAMPLE
ROW(u64, uint64_t, )
#else
IRIS_WORD_TYPES(ROW, )
#endif
#undef ROW

/* A tile that another workgroup has marked as ready. */
IRIS_KERNEL(code_wait_wg_await, struct protocol_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t lane = iris_d_lane();

    iris_wg_tile_await(wg, dev, args->signal, args->value);
    AFTER;
}

/* code_set_<how>: several signals. Their number is a constant, since a wait for
 * none of them acquires nothing. */
#define SIGNALS 3
#define ROW(how, call)                                                         \
    IRIS_KERNEL(code_set_##how, struct protocol_args)                          \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        uint32_t lane = iris_d_lane();                                         \
        const uint64_t *set = args->signal + lane;                             \
        size_t indices[SIGNALS];                                               \
        if (call) {                                                            \
            AFTER;                                                             \
        }                                                                      \
        (void)indices;                                                         \
    }
ROW(any, iris_wait_until_any(dev, set, SIGNALS, NULL, args->cmp, args->value) <
             SIGNALS)
ROW(some, iris_wait_until_some(dev, set, SIGNALS, NULL, args->cmp, args->value,
                               indices) > 0)
ROW(all, (iris_wait_until_all(dev, set, SIGNALS, NULL, args->cmp, args->value), 1))
ROW(test_any, iris_test_any(dev, set, SIGNALS, NULL, args->cmp, args->value) <
                  SIGNALS)
ROW(test_all, iris_test_all(dev, set, SIGNALS, NULL, args->cmp, args->value))
#undef ROW
#endif

#ifdef AMD_signals
/* code_signal_<how>: data, then a signal. */
IRIS_KERNEL(code_signal_element, struct protocol_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t lane = iris_d_lane();

    iris_put_signal_u16(dev, args->data + lane + 4096, args->data + lane,
                        args->signal + lane, args->value, args->peer);
}

IRIS_KERNEL(code_signal_wg_put, struct protocol_args)
{
    iris_wg_put_signal(wg, iris_dev_init(args->context), args->data, args->heap,
                       args->count, args->signal, args->value, args->peer);
}

IRIS_KERNEL(code_signal_wg_put_add, struct protocol_args)
{
    iris_wg_put_signal_add(wg, iris_dev_init(args->context), args->data,
                           args->heap, args->count, args->signal, args->value,
                           args->peer);
}

IRIS_KERNEL(code_signal_wg_tile_put, struct protocol_args)
{
    iris_tile_t tile = iris_tile(args->data, 64, 64, args->count, 2);

    iris_wg_tile_put_signal(wg, iris_dev_init(args->context), tile,
                            iris_tile(args->heap, 64, 64, args->count, 2),
                            args->signal, args->value, args->peer);
}

IRIS_KERNEL(code_signal_wg_tile_put_add, struct protocol_args)
{
    iris_tile_t tile = iris_tile(args->data, 64, 64, args->count, 2);

    iris_wg_tile_put_signal_add(wg, iris_dev_init(args->context), tile,
                                iris_tile(args->heap, 64, 64, args->count, 2),
                                args->signal, args->value, args->peer);
}

/* The trap of the memory model: all lanes store, all come together, one says
 * so. */
IRIS_KERNEL(code_signal_wg_ready, struct protocol_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_WG_LANES(wg, i, args->count) {
        iris_store_u16(dev, args->data + i, (uint16_t)i, args->peer);
    }
    iris_wg_tile_ready(wg, dev, args->signal, args->value);
}

/* The same, for a copy engine. */
IRIS_KERNEL(code_signal_wg_plan, struct protocol_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_WG_LANES(wg, i, args->count) {
        iris_store_u16(dev, args->data + i, (uint16_t)i, args->peer);
    }
    iris_plan_publish(wg, dev, (struct iris_dev_plan *)args->heap, 0,
                      (uint32_t)args->value, (uint32_t)args->count);
}

IRIS_KERNEL(code_signal_wg_stores, struct protocol_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_WG_LANES(wg, i, args->count) {
        iris_store_u16(dev, args->data + i, (uint16_t)i, args->peer);
    }
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, args->signal, args->value, args->peer);
    }
}

#endif

#ifdef AMD_ranks
/* Data of one rank, read by another. */
IRIS_KERNEL(code_ranks, struct protocol_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_WG_LANES(wg, i, args->count) {
        iris_store_u16(dev, args->data + i, (uint16_t)i, args->peer);
    }
    iris_dev_barrier(wg, dev, args->group);
    IRIS_WG_LANES(wg, i, args->count) {
        iris_store_u16(dev, (uint16_t *)args->heap + i,
                       iris_load_u16(dev, args->data + i, 0), args->peer);
    }
}

#endif

#ifdef AMD_bulk
IRIS_KERNEL(code_bulk_put, struct protocol_args)
{
    iris_wg_put(wg, iris_dev_init(args->context), args->data, args->heap,
                args->count, args->peer);
}

IRIS_KERNEL(code_bulk_get, struct protocol_args)
{
    iris_wg_get(wg, iris_dev_init(args->context), args->heap, args->data,
                args->count, args->peer);
}

IRIS_KERNEL(code_bulk_copy, struct protocol_args)
{
    iris_wg_copy(wg, iris_dev_init(args->context), args->heap, args->data,
                 args->count, args->peer, 0);
}

IRIS_KERNEL(code_bulk_flush, struct protocol_args)
{
    iris_wg_put(wg, iris_dev_init(args->context), args->data, args->heap,
                args->count, args->peer);
    iris_wg_flush_source(wg);
    if (iris_wg_leader(wg)) {
        args->data[args->count / 2] = 1;
    }
}
#endif
/* clang-format on */

#ifdef AMD_products
struct product_args {
    const int64_t *context;
    iris_tile_t a;
    iris_tile_t b;
    iris_tile_t c;
    int peer;
};

#define PRODUCT(name, product, DTYPE)                                     \
    IRIS_KERNEL(code_##name, struct product_args)                         \
    {                                                                     \
        IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);                         \
        iris_dev_t dev = iris_dev_init(args->context);                    \
                                                                          \
        iris_wg_tile_sums_zero(wg, sums);                                 \
        product(wg, sums, args->a, args->b, IRIS_DTYPE_##DTYPE);          \
        iris_wg_tile_sums_put(wg, dev, sums, args->c, IRIS_DTYPE_##DTYPE, \
                              args->peer);                                \
    }
PRODUCT(product_f16, iris_wg_tile_product, F16)
PRODUCT(product_bf16, iris_wg_tile_product, BF16)
PRODUCT(product_f32, iris_wg_tile_product, F32)
PRODUCT(ordered_f16, iris_wg_tile_product_in_order, F16)
PRODUCT(ordered_bf16, iris_wg_tile_product_in_order, BF16)
PRODUCT(ordered_f32, iris_wg_tile_product_in_order, F32)
#undef PRODUCT
#endif

#endif /* AMD_PROTOCOLS_H */
