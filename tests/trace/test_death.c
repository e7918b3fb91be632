/* SPDX-License-Identifier: MIT
 *
 * Traces when a rank has died: what the others have recorded is written.
 */
#define IRIS_TRACE 1 /* before the device API */
#include "config.h"

#include "support/harness.h"
#include "support/procs.h"

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++ */
#include "trace/trace.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READY = 1, DONE };

#define EVENTS 5

struct wait_args {
    const int64_t *context;
    uint64_t *memory;
    int for_ever;
};

/* Five stores to the other rank, and a wait for the last of its, or for a
 * signal that never comes. */
IRIS_KERNEL(store_and_wait, struct wait_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (wg.id != 0 || !iris_wg_leader(wg)) {
        return;
    }
    for (uint64_t i = 0; i < EVENTS; i++) {
        iris_store_volatile(dev, &args->memory[2 * i], i, 1 - dev.rank);
    }
    (void)iris_wait_until_u64(
        dev, &args->memory[args->for_ever ? 20 : 2 * (EVENTS - 1)], IRIS_CMP_EQ,
        EVENTS - 1);
}

#if IRIS_ON_CPU

/* What survivors do, and what their files are called. */
struct death {
    const char *folder;
    int is_waiting; /* in a kernel, when the other rank dies */
};

static int count_stores(void *arg, const struct iris_event *event)
{
    *(int64_t *)arg += strcmp(event->name, "store") == 0;
    return 0;
}

/* -1: there is no such file. */
static int64_t stores_in(const char *folder, const char *name)
{
    struct iris_json *json = malloc(sizeof *json);
    struct iris_trace_file file;
    int64_t count = 0;
    char path[1000];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (json == NULL || iris_i_json_open(json, path) != 0 ||
        iris_i_events_read(json, &file, count_stores, &count) != 0) {
        count = -1;
    } else {
        iris_i_json_close(json);
    }
    free(json);
    return count;
}

static iris_status_t export_to(iris_t *iris, const struct death *death,
                               const char *name, int merge)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", death->folder, name);
    return iris_trace_export(iris, path, merge);
}

/* How many stores the file of rank 0 has; takes that rank's file away. */
static int64_t take_files(const struct death *death, const char *name)
{
    char path[500];
    int64_t count;

    snprintf(path, sizeof path, "%s_rank0.json", name);
    count = stores_in(death->folder, path);
    snprintf(path, sizeof path, "%s/%s_rank0.json", death->folder, name);
    return unlink(path) == 0 ? count : -1;
}

/* The first thing that is wrong, or IRIS_OK. */
static iris_status_t survive(iris_t *iris, const struct death *death)
{
    iris_status_t lost = death->is_waiting ? iris_stream_synchronize(iris, NULL)
                                           : iris_barrier(iris, NULL, NULL);
    iris_status_t status;

    if (lost != IRIS_ERR_PEER_LOST) {
        return IRIS_ERR_SYSTEM;
    }
    status = export_to(iris, death, "alone.json", 0);
    if (status != IRIS_OK || take_files(death, "alone") != EVENTS) {
        return status ? status : IRIS_ERR_INVALID;
    }
    status = export_to(iris, death, "merged.json", 1);
    if (status != IRIS_ERR_PEER_LOST || take_files(death, "merged") != EVENTS) {
        return IRIS_ERR_MISMATCH;
    }
    /* The trace has taken nothing of the error away. */
    return !death->is_waiting ||
                   iris_stream_synchronize(iris, NULL) == IRIS_ERR_PEER_LOST
               ? IRIS_OK
               : IRIS_ERR_STATE;
}

static void body(int rank, struct proc_report *report, void *arg)
{
    const struct death *death = arg;
    struct wait_args args = {.for_ever = death->is_waiting && rank == 0};
    iris_t *iris = proc_init(report);
    iris_status_t status;

    if (iris == NULL) {
        return;
    }
    args.context = iris_device_context(iris);
    status = iris_trace_enable(iris, 1000);
    status =
        status ? status : iris_calloc(iris, 1, 4096, (void **)&args.memory);
    status = status ? status
                    : iris_launch(iris, store_and_wait, 1, 1, &args,
                                  sizeof args, NULL);
    if (status == IRIS_OK && !args.for_ever) {
        status = iris_stream_synchronize(iris, NULL);
    }
    proc_note(report, status);
    proc_reach(report, READY);
    if (status != IRIS_OK || rank == 1) {
        pause(); /* until it is killed */
    }
    proc_note(report, survive(iris, death));
    (void)iris_finalize(iris);
}

static void run_death(int is_waiting)
{
    char folder[300];
    struct death death = {folder, is_waiting};
    struct procs procs;

    snprintf(folder, sizeof folder, "%s", harness_folder());
    procs_start(&procs, 2, body, &death);
    procs_await(&procs, 0, READY);
    procs_await(&procs, 1, READY);
    assert_int_equal(procs.reports[0].status, IRIS_OK);
    assert_int_equal(procs.reports[1].status, IRIS_OK);
    procs_kill(&procs, 1);
    procs_join(&procs);
    assert_int_equal(procs.reports[0].status, IRIS_OK);
    procs_free(&procs);
}

static TEST(a_survivor_writes_what_it_has)
{
    run_death(0);
}

static TEST(so_it_does_after_its_kernel_was_ended)
{
    run_death(1);
}

TEST_GROUP(unit);

#endif /* IRIS_ON_CPU */
