/* SPDX-License-Identifier: MIT
 *
 * Series begin and end here; device/watch/series.h continues them. No access of a series needs
 * a check: its block contains an access that was checked, and heaps consist of
 * whole blocks.
 */
#include "config.h"

#include "backend/backend.h"

static void tell(struct iris_cpu_series *series, struct iris_hooks *hooks)
{
    if (series->event.bytes != 0) {
        (void)iris_i_hooks_device(hooks, &series->event);
        series->event.address = series->next;
        series->event.bytes = 0;
    }
}

/* The series that ends for a new one: an earlier block of the same, else each
 * in turn. */
static struct iris_cpu_series *choose(struct iris_cpu_wg *cpu,
                                      const struct iris_cpu_event *event,
                                      uint64_t what)
{
    for (unsigned i = 0; i < IRIS_CPU_SERIES; i++) {
        if (cpu->series[i].what == what &&
            cpu->series[i].event.site == event->site &&
            cpu->series[i].event.target_rank == event->target_rank) {
            return &cpu->series[i];
        }
    }
    return &cpu->series[cpu->next_series++ % IRIS_CPU_SERIES];
}

void iris_i_cpu_series_begin(struct iris_cpu_wg *cpu, struct iris_hooks *hooks,
                             const struct iris_cpu_event *event, uint64_t what)
{
    struct iris_cpu_series *series = choose(cpu, event, what);

    tell(series, hooks);
    series->next = (const char *)event->address + event->bytes;
    series->room = -(uintptr_t)series->next % IRIS_CPU_SERIES_BYTES;
    series->what = what;
    series->event = *event;
    series->event.address = series->next;
    series->event.bytes = 0;
}

void iris_i_cpu_series_tell(struct iris_cpu_wg *cpu, struct iris_hooks *hooks)
{
    for (unsigned i = 0; cpu->series != NULL && i < IRIS_CPU_SERIES; i++) {
        tell(&cpu->series[i], hooks);
    }
}
