/* SPDX-License-Identifier: MIT
 *
 * Plain accesses by one site to consecutive elements, of which observers get
 * few events. CPU only.
 */
#ifndef IRIS_DEVICE_SERIES_H
#define IRIS_DEVICE_SERIES_H

#include <iris/device/watch/cpu.h>
#include <iris/device/watch/record.h>

/* Observers that allow it (`takes_series` of struct iris_observer) get the first
 * access to a block as an event, and the following ones together as another.
 * They get the latter when the series leaves the block, and before the
 * workgroup ends or does an operation that is not plain. */
#define IRIS_CPU_SERIES 4         /* number for each workgroup */
#define IRIS_CPU_SERIES_BYTES 256 /* size of a block */
struct iris_cpu_series {
    const void *next;            /* the address that continues it */
    size_t room;                 /* bytes from there to the end of its block */
    uint64_t what;               /* iris_d_packed() of its accesses */
    struct iris_cpu_event event; /* the accesses that observers have not got;
                                  * bytes 0: they have got all */
};

#if IRIS_ON_CPU
/* Whether the workgroup's latest operation continues a series. Adds it. */
IRIS_CPU_COLD int iris_d_continues(struct iris_cpu_wg *cpu, const void *address,
                                   int rank, uint64_t what)
{
    size_t bytes = (size_t)(what >> IRIS_D_BYTES_SHIFT);
    unsigned count = cpu->series == NULL ? 0 : IRIS_CPU_SERIES;

    for (unsigned i = 0; i < count; i++) {
        struct iris_cpu_series *series = &cpu->series[i];

        if (series->next == address && series->what == what &&
            series->room >= bytes && series->event.site == cpu->site &&
            series->event.target_rank == rank) {
            series->next = (const char *)series->next + bytes;
            series->room -= bytes;
            series->event.bytes += bytes;
            return 1;
        }
    }
    return 0;
}
#endif

#endif /* IRIS_DEVICE_SERIES_H */
