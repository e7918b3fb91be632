/* SPDX-License-Identifier: MIT
 *
 * The target of a build for the fake HIP runtime: the CPU's, but kernels are
 * their own images for GPUs, and waits ask the runtime what they would ask of a
 * GPU. compat.h in device/ includes it.
 */
#ifndef IRIS_TESTS_TARGET_FAKE_H
#define IRIS_TESTS_TARGET_FAKE_H

#include <iris/device/core/target_cpu.h>

/* Each poll gives the core away, maybe to many others in turn. */
#undef IRIS_D_WATCHED
#define IRIS_D_WATCHED 1
#undef IRIS_D_NOTES
#define IRIS_D_NOTES 1
#define IRIS_D_POLLS_PER_CHECK 8u

#undef IRIS_D_CAN_TRACE
#define IRIS_D_CAN_TRACE 1

#undef IRIS_D_GPU_IMAGE
#define IRIS_D_GPU_IMAGE(name) name
#undef IRIS_D_ENTER
#define IRIS_D_ENTER(wg) (*fake_self() = ((const iris_wg_t *)(wg))->fake)
#undef IRIS_D_WG_MEMBERS
#define IRIS_D_WG_MEMBERS    \
    struct iris_cpu_wg *cpu; \
    struct fake_workgroup *fake; /* NULL: the simulation runs it */

struct iris_cpu_wg;
#ifdef __cplusplus
extern "C" {
#endif
/* A workgroup that the fake runtime runs: what its waits ask of the GPU. */
struct fake_workgroup {
    uint32_t id;
    uint64_t (*clock)(void);
    void (*poll)(struct fake_workgroup *self);
    void (*end)(struct fake_workgroup *self); /* does not return */
    struct iris_cpu_wg *far; /* as a user of the ring to other nodes */
};

/* The calling thread's, NULL if it runs none; one variable for each program,
 * which kernels' CPU versions set. */
__attribute__((weak, noinline, visibility("hidden"))) struct fake_workgroup **
fake_self(void);
struct fake_workgroup **fake_self(void)
{
    static __thread struct fake_workgroup *self;

    return &self;
}
#ifdef __cplusplus
}
#endif

#undef IRIS_D_PAUSED
#define IRIS_D_PAUSED() fake_paused()
IRIS_DEVICE void fake_paused(void)
{
    if (*fake_self() != NULL) {
        (*fake_self())->poll(*fake_self());
    }
}

#define IRIS_D_FAR_OWN() (*fake_self() == NULL ? NULL : (*fake_self())->far)

/* What atomic.h has for GPUs. */
IRIS_DEVICE uint64_t iris_d_clock(void)
{
    return (*fake_self())->clock();
}

IRIS_DEVICE void iris_d_end_lane(void)
{
    (*fake_self())->end(*fake_self());
}

IRIS_DEVICE uint32_t iris_d_wg_id(void)
{
    return (*fake_self())->id;
}

#endif /* IRIS_TESTS_TARGET_FAKE_H */
