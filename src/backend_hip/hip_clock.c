/* SPDX-License-Identifier: MIT
 *
 * The rate of the clock that kernels read: what the runtime says, else what a
 * kernel shows.
 */
#include "config.h"

#include "backend_hip/hip_clock.h"

#include "backend_hip/hip_call.h"
#include "backend_hip/hip_launch.h"
#include "backend_hip/hip_quirks.h"

#include <iris/device/kernels/signal_args.h>

#include "base/clock.h"

#include <time.h>

#define MI200_KHZ 25000 /* CDNA 2's manual: "constant 25MHz clock" */
#define MI300_KHZ 100000
/* Two readings are so far apart, and one takes so long at most. */
#define APART_NS 20000000
#define MOST_NS 1000000000
#define NAP_NS 20000

/* A reading, which was made between two times of the host's. */
struct reading {
    int64_t ticks;
    int64_t before_ns;
    int64_t after_ns;
};

static void nap(int64_t ns)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static bool read_clock(struct hip_backend *hip, struct reading *reading_p)
{
    char *pinned = (char *)(uintptr_t)hip->info.watch;
    const struct iris_clock_args args = {
        (void *)(pinned + offsetof(struct hip_pinned, clock))};
    hipError_t error = hipErrorNotReady;

    hip->pinned->clock = 0;
    reading_p->before_ns = iris_i_now_ns();
    reading_p->after_ns = reading_p->before_ns;
    if (!iris_i_hip_launch_lane(hip, hip->gpu->fill, hip->params.clock,
                                &args)) {
        return false;
    }
    while (error == hipErrorNotReady &&
           reading_p->after_ns - reading_p->before_ns < MOST_NS) {
        error = hipStreamQuery(hip->gpu->fill);
        if (error == hipErrorNotReady) {
            nap(NAP_NS);
        }
        reading_p->after_ns = iris_i_now_ns();
    }
    reading_p->ticks = hip->pinned->clock;
    return error == hipSuccess && reading_p->ticks > 0;
}

/* The clocks that there are run at 25, 27 and 100 MHz; what is near one of them
 * is that. */
static int64_t nearest(int64_t khz)
{
    static const int64_t known[] = {MI200_KHZ, 27000, MI300_KHZ};

    for (int i = 0; i < 3; i++) {
        if (khz > known[i] - known[i] / 25 && khz < known[i] + known[i] / 25) {
            return known[i];
        }
    }
    return khz;
}

/* 0: it cannot be measured. */
static int64_t measure(struct hip_backend *hip)
{
    struct reading first, second;
    int64_t ns;

    if (!read_clock(hip, &first)) {
        return 0;
    }
    nap(APART_NS);
    if (!read_clock(hip, &second)) {
        return 0;
    }
    ns = (second.before_ns + second.after_ns - first.before_ns -
          first.after_ns) /
         2;
    return second.ticks <= first.ticks
               ? 0
               : nearest((second.ticks - first.ticks) * 1000000 / ns);
}

/* HIP says it since 5.4; an emulator says 0. */
void iris_i_hip_find_clock(struct hip_backend *hip)
{
    int64_t khz = 0;

#if IRIS_HIP_NVIDIA
    khz = 1000000; /* nanoseconds */
#elif HAVE_DECL_HIPDEVICEATTRIBUTEWALLCLOCKRATE
    khz = iris_i_hip_attribute(hip, hipDeviceAttributeWallClockRate, 0);
#endif
    if (khz <= 0 && !iris_i_hip_is_mi200(hip)) {
        khz = MI300_KHZ;
    }
    if (khz <= 0) {
        khz = measure(hip);
    }
    hip->info.clock_khz = khz > 0 ? khz : MI200_KHZ;
}
