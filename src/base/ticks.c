/* SPDX-License-Identifier: MIT
 *
 * Whether the processor's counter can be trusted, and the duration of its
 * ticks.
 */
#include "config.h"

#include "base/base.h"

#include "base/processor.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#if IRIS_ON_X86
#include <cpuid.h>
#include <sys/prctl.h>
#endif

/* The first rate is measured for this long: readings are 50 ns apart at worst
 * where the clock is no system call, so it is right to 0.03 %. */
#define FIRST_NS (200 * IRIS_NS_PER_US)

/* The longest time between calibrations, and the shortest that a rate is
 * measured over. */
#define SPAN_NS IRIS_NS_PER_S
#define LEAST_NS (100 * IRIS_NS_PER_US)

/* If two rates differ by more than this fraction, the counter jumped. */
#define JUMP_PART 64
#define AGREE_PART 500

/* Number of readings. The quickest counts: the others may have been
 * interrupted. */
#define READINGS 5

#define ONE (UINT64_C(1) << 32)

int iris_i_ticks_count;

struct pair {
    uint64_t ticks;
    int64_t ns;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct iris_ticks_calibration of_process; /* written once */

/* ---- The machine ---- */

#if IRIS_ON_X86
#define CLOCK_NAME "tsc"
#define INVARIANT_LEAF 0x80000007u
#define INVARIANT_BIT (1u << 8)

/* The system may forbid a process to read the counter. */
static int is_invariant(void)
{
    unsigned a, b, c, d;
    int mode = PR_TSC_ENABLE;

    return prctl(PR_GET_TSC, &mode) == 0 && mode == PR_TSC_ENABLE &&
           __get_cpuid(INVARIANT_LEAF, &a, &b, &c, &d) != 0 &&
           (d & INVARIANT_BIT) != 0;
}
#elif IRIS_ON_ARM64
#define CLOCK_NAME "arch_sys_counter"

/* The architecture guarantees it. */
static int is_invariant(void)
{
    return 1;
}
#else
#define CLOCK_NAME ""

static int is_invariant(void)
{
    return 0;
}
#endif

static int is_clock(void)
{
    char name[64] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/"
                       "current_clocksource",
                       "re");

    if (file == NULL) {
        return 0;
    }
    if (fgets(name, sizeof name, file) == NULL) {
        name[0] = '\0';
    }
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
    return strcmp(name, CLOCK_NAME) == 0;
}

void iris_i_ticks_pair(uint64_t *ticks_p, int64_t *ns_p)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < READINGS; i++) {
        uint64_t before = iris_i_ticks_counter();
        int64_t ns = iris_i_now_ns();
        uint64_t took = iris_i_ticks_counter() - before;

        if (took < least) {
            least = took;
            *ticks_p = before + took / 2;
            *ns_p = ns;
        }
    }
}

/* ---- Rates ---- */

/* Nanoseconds per tick, times 2^32; 0 if the values give no rate. Times of more
 * than two seconds are halved until the shift fits: the rate loses no
 * significant digit. */
static uint64_t rate_of(uint64_t ticks, int64_t ns)
{
    if (ns <= 0 || ticks == 0 || ticks > INT64_MAX) {
        return 0;
    }
    while (ns >= (int64_t)ONE / 2) {
        ns /= 2;
        ticks /= 2;
    }
    return ticks == 0 ? 0 : ((uint64_t)ns << 32) / ticks;
}

static int is_near(uint64_t a, uint64_t b, unsigned part)
{
    uint64_t apart = a > b ? a - b : b - a;

    return a != 0 && b != 0 && apart <= b / part;
}

int iris_i_ticks_trusted(int invariant, int clock, const uint64_t rates[2])
{
    return invariant && rates[0] != 0 &&
           (clock || is_near(rates[0], rates[1], AGREE_PART));
}

/* The next rate, after enough time to measure it. */
static uint64_t measure_rate(struct pair *pair)
{
    const struct pair last = *pair;
    struct timespec left = {.tv_nsec = FIRST_NS};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    iris_i_ticks_pair(&pair->ticks, &pair->ns);
    return rate_of(pair->ticks - last.ticks, pair->ns - last.ns);
}

static void decide_trust(void)
{
    uint64_t rates[2] = {0, 0};
    int clock = is_clock();
    struct pair first, pair;

    if (!is_invariant()) {
        return;
    }
    iris_i_ticks_pair(&first.ticks, &first.ns);
    pair = first;
    rates[0] = measure_rate(&pair);
    rates[1] = clock ? 0 : measure_rate(&pair);
    if (!iris_i_ticks_trusted(1, clock, rates)) {
        return;
    }
    of_process.from_ticks = first.ticks;
    of_process.from_ns = first.ns;
    of_process.scale.ns_per_tick = rates[0];
    iris_i_ticks_calibrate(&of_process, pair.ticks, pair.ns);
    iris_i_ticks_count = 1;
}

void iris_i_ticks_open(struct iris_ticks_calibration *calibration_p)
{
    static const struct iris_ticks_calibration clock = {
        .scale.ns_per_tick = ONE, .span = UINT64_MAX};

    pthread_once(&once, decide_trust);
    *calibration_p = iris_i_ticks_count ? of_process : clock;
}

/* A rate that is far from the last one means that the machine was suspended or
 * migrated in between. The old rate stays, unless the next one is far from it,
 * too. */
void iris_i_ticks_calibrate(struct iris_ticks_calibration *calibration,
                            uint64_t ticks, int64_t ns)
{
    struct iris_ticks_scale *scale = &calibration->scale;
    int64_t took = ns - calibration->from_ns;
    uint64_t rate = rate_of(ticks - calibration->from_ticks, took);
    int jumped = !is_near(rate, scale->ns_per_tick, JUMP_PART);

    if (rate != 0 && took >= LEAST_NS && (!jumped || calibration->jumped)) {
        scale->ns_per_tick = rate;
        jumped = 0;
    }
    if (jumped || took >= SPAN_NS) {
        calibration->from_ticks = ticks;
        calibration->from_ns = ns;
    }
    calibration->jumped = jumped;
    scale->ticks = ticks;
    scale->ns = ns;
    took = took < LEAST_NS ? LEAST_NS : took > SPAN_NS ? SPAN_NS : took;
    calibration->span = ((uint64_t)took << 32) / scale->ns_per_tick;
}

int64_t iris_i_ticks_ns(const struct iris_ticks_scale *scale, uint64_t ticks)
{
    uint64_t ahead = ticks - scale->ticks, rate = scale->ns_per_tick;
    int is_before = ahead > INT64_MAX;
    uint64_t d = is_before ? -ahead : ahead, low = d % ONE;
    uint64_t ns =
        d / ONE * rate + low * (rate / ONE) + low * (rate % ONE) / ONE;

    return (int64_t)((uint64_t)scale->ns + (is_before ? -ns : ns));
}

uint64_t iris_i_ticks_clock(void)
{
    return (uint64_t)iris_i_now_ns();
}
