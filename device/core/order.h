/* SPDX-License-Identifier: MIT
 *
 * Order and scope of one access as a value, and their translation to the
 * constants that builtins and instructions want.
 */
#ifndef IRIS_DEVICE_ORDER_H
#define IRIS_DEVICE_ORDER_H

#include <iris/types.h>
#include <iris/device/core/compat.h>

/* Memory order and scope of one access. */
typedef struct iris_d_order {
    iris_sem_t sem;
    iris_scope_t scope;
} iris_d_order_t;

IRIS_DEVICE iris_d_order_t iris_d_order(iris_sem_t sem, iris_scope_t scope)
{
    iris_d_order_t order = {sem, scope};

    return order;
}

IRIS_DEVICE iris_bool_t iris_d_acquires(iris_d_order_t how)
{
    return how.sem != IRIS_RELAXED && how.sem != IRIS_RELEASE;
}

IRIS_DEVICE iris_bool_t iris_d_releases(iris_d_order_t how)
{
    return how.sem != IRIS_RELAXED && how.sem != IRIS_ACQUIRE;
}

/* These pass every combination to OP(order, scope), in the target's words from
 * atomic.h. The optimiser keeps one. Values outside the enums get the strongest
 * order and scope. */
/* clang-format off */
#if IRIS_ON_CPU /* every scope is the system */
#define IRIS_D_SCOPED(OP, order, how)                                          \
    OP(IRIS_D_ORDER(order), 0)
#else
#define IRIS_D_SCOPED(OP, order, how)                                          \
    if ((how).scope == IRIS_SCOPE_WG) {                                        \
        OP(IRIS_D_ORDER(order), IRIS_D_WG);                                    \
    } else if ((how).scope == IRIS_SCOPE_AGENT) {                              \
        OP(IRIS_D_ORDER(order), IRIS_D_AGENT);                                 \
    } else {                                                                   \
        OP(IRIS_D_ORDER(order), IRIS_D_SYSTEM);                                \
    }
#endif

/* Orders that release, after iris_d_released(). */
#if IRIS_ON_HIP /* AMD: only the orders of workgroup scope are left */
#define IRIS_D_RELEASING(OP, order, how)                                       \
    OP(IRIS_D_ORDER(order), IRIS_D_WG)
#else
#define IRIS_D_RELEASING(OP, order, how)                                       \
    IRIS_D_SCOPED(OP, order, how)
#endif

#define IRIS_D_LOADING(OP, how) /* a load has no release part */               \
    if (iris_d_acquires(how)) {                                                \
        IRIS_D_SCOPED(OP, ACQUIRE, how);                                       \
    } else {                                                                   \
        IRIS_D_SCOPED(OP, RELAXED, how);                                       \
    }

#define IRIS_D_STORING(OP, how) /* a store has no acquire part */              \
    if (iris_d_releases(how)) {                                                \
        IRIS_D_RELEASING(OP, RELEASE, how);                                    \
    } else {                                                                   \
        IRIS_D_SCOPED(OP, RELAXED, how);                                       \
    }

#define IRIS_D_UPDATING(OP, how)                                               \
    if (iris_d_acquires(how) && iris_d_releases(how)) {                        \
        IRIS_D_RELEASING(OP, ACQ_REL, how);                                    \
    } else if (iris_d_acquires(how)) {                                         \
        IRIS_D_SCOPED(OP, ACQUIRE, how);                                       \
    } else {                                                                   \
        IRIS_D_STORING(OP, how);                                               \
    }
/* clang-format on */

#endif /* IRIS_DEVICE_ORDER_H */
