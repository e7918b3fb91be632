/* SPDX-License-Identifier: MIT
 *
 * Tells observers on the CPU of a workgroup's collective.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_WATCH_H
#define IRIS_DEVICE_KERNELS_CCL_WATCH_H

#include <iris/device/kernels/ccl_space.h>

typedef struct iris_d_collective {
    const void *in;
    size_t in_bytes;
    void *out;
    size_t out_bytes;
    uint64_t id;
} iris_d_collective_t;

#if IRIS_ON_CPU
IRIS_DEVICE iris_d_collective_t iris_d_wg_collective(const void *in, void *out,
                                                     size_t bytes)
{
    const iris_d_collective_t collective = {in, bytes, out, bytes, 0};

    return collective;
}

/* The event of a collective with a part for each member. */
IRIS_DEVICE iris_d_collective_t iris_d_wg_parts(
    const iris_d_ccl_t *ccl, const struct iris_ccl_packet_args *args)
{
    iris_d_collective_t collective =
        iris_d_wg_collective(args->in, args->out, args->bytes);
    int exchange = args->exchange;
    iris_bool_t is_root = ccl->index == (uint32_t)args->root;

    if (exchange == IRIS_CCL_REDUCE_PARTS || exchange == IRIS_CCL_SWAP) {
        collective.in_bytes *= ccl->count;
    } else if (exchange == IRIS_CCL_SPREAD || exchange == IRIS_CCL_DEAL) {
        collective.in_bytes *= !is_root                    ? 0
                               : exchange == IRIS_CCL_DEAL ? ccl->count
                                                           : 1;
    } else if (exchange == IRIS_CCL_BRING_SUMS && !is_root) {
        collective.out_bytes = 0;
    }
    if (exchange == IRIS_CCL_GATHER || exchange == IRIS_CCL_SWAP ||
        exchange == IRIS_CCL_BRING) {
        collective.out_bytes *=
            exchange == IRIS_CCL_BRING && !is_root ? 0 : ccl->count;
    }
    return collective;
}

IRIS_CPU_COLD iris_d_collective_t iris_d_before_collective(
    struct iris_cpu_wg *cpu, iris_d_collective_t collective)
{
    struct iris_cpu_event *event;

    cpu->num_ops++;
    cpu->site = IRIS_D_CALLER();
    collective.id = cpu->num_ops;
    event = iris_d_event(cpu, collective.in, cpu->rank,
                         iris_d_bulk(IRIS_OP_COLLECTIVE, collective.in_bytes));
    iris_cpu_observe(cpu, event);
    event = iris_d_event(cpu, collective.out, cpu->rank,
                         iris_d_bulk(IRIS_OP_COLLECTIVE, collective.out_bytes) |
                             IRIS_D_WRITE);
    iris_cpu_observe(cpu, event);
    return collective;
}

IRIS_CPU_COLD void
iris_d_after_collective(struct iris_cpu_wg *cpu,
                        const iris_d_collective_t *collective)
{
    struct iris_cpu_event *event = iris_d_event(
        cpu, collective->out, cpu->rank,
        iris_d_bulk(IRIS_OP_COLLECTIVE, collective->out_bytes) | IRIS_D_WRITE);

    event->id = collective->id;
    iris_d_after(cpu, 1, 0);
}
#endif

#endif /* IRIS_DEVICE_KERNELS_CCL_WATCH_H */
