/* SPDX-License-Identifier: MIT
 *
 * iris probe: the host's half of each check.
 */
#include "config.h"

#include "probe.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 64u
#define COPIED_BYTES sizeof((struct probe_board *)NULL)->in

/* With the step's arguments, and waits for it. */
static iris_status_t launch(struct probe *probe,
                            const struct iris_kernel *kernel, unsigned grid,
                            unsigned block)
{
    iris_status_t status = iris_launch(probe->iris, kernel, grid, block,
                                       &probe->args, sizeof probe->args, NULL);

    return status == IRIS_OK ? iris_stream_synchronize(probe->iris, NULL)
                             : status;
}

/* The errors that the kernels of this rank found. */
static iris_status_t read_board(struct probe *probe,
                                struct probe_found *found_p)
{
    static const char *const whats[PROBE_NUM_WHATS] = {
        "?",
        "rank in the device context",
        "ranks in the device context",
        "address of a rank's heap",
        "first word of the peer's heap",
        "data",
    };
    struct probe_notes notes;
    iris_status_t status = iris_memcpy_sync(
        probe->iris, &notes, &probe->args.board->notes, sizeof notes);

    if (status == IRIS_OK && notes.wrong != 0) {
        found_p->verdict = PROBE_WRONG;
        snprintf(found_p->text, sizeof found_p->text,
                 "rank %d found %" PRIu64 " wrong; first: %s: expected "
                 "0x%" PRIx64 ", found 0x%" PRIx64,
                 probe->args.rank, notes.wrong,
                 whats[notes.what < PROBE_NUM_WHATS ? notes.what : 0],
                 notes.expected, notes.seen);
    }
    return status;
}

/* The same, and what it found. */
static iris_status_t launch_and_read(struct probe *probe,
                                     const struct iris_kernel *kernel,
                                     unsigned grid, unsigned block,
                                     struct probe_found *found_p)
{
    iris_status_t status = launch(probe, kernel, grid, block);

    return status == IRIS_OK ? read_board(probe, found_p) : status;
}

static iris_status_t run_context(struct probe *probe,
                                 struct probe_found *found_p)
{
    return launch_and_read(probe, probe_context, 1, LANES, found_p);
}

static iris_status_t run_flag(struct probe *probe, struct probe_found *found_p)
{
    (void)found_p;
    return launch(probe, probe_flag, 1, LANES);
}

static iris_status_t run_data(struct probe *probe, struct probe_found *found_p)
{
    return launch_and_read(probe, probe_data, PROBE_GRID, LANES, found_p);
}

/* ---- Atomics ---- */

static int num_members(const struct probe *probe)
{
    int count = 0;

    for (uint64_t left = probe->args.members; left != 0; left &= left - 1) {
        count++;
    }
    return count;
}

static iris_status_t run_atomics(struct probe *probe,
                                 struct probe_found *found_p)
{
#define KERNEL(name, c_type, arg) probe_atomic_##name,
    static const struct iris_kernel *const kernels[] = {IRIS_TYPES(KERNEL, )};
#undef KERNEL
    iris_status_t status = IRIS_OK;

    (void)found_p;
    probe->args.rounds =
        PROBE_UPDATES /
        (probe->second < 0 ? (unsigned)probe->args.num_ranks : 2);
    for (size_t i = 0;
         i < sizeof kernels / sizeof kernels[0] && status == IRIS_OK; i++) {
        status = launch(probe, kernels[i], PROBE_GRID, LANES);
    }
    return status;
}

/* Compares a cell, as a number. */
static void check_cell(struct probe_found *found_p, const char *type,
                       const char *verb, int expected, float seen)
{
    if (seen != (float)expected && found_p->verdict == PROBE_OK) {
        found_p->verdict = PROBE_WRONG;
        snprintf(found_p->text, sizeof found_p->text,
                 "%s of %s: expected %d, found %g", verb, type, expected,
                 (double)seen);
    }
}

static iris_status_t verify_atomics(struct probe *probe,
                                    struct probe_found *found_p)
{
    struct probe_board *board = malloc(sizeof *board);
    int count = (int)probe->args.rounds * num_members(probe), largest = 0;
    iris_status_t status = IRIS_ERR_NO_MEMORY;

    for (int rank = 0; rank < probe->args.num_ranks; rank++) {
        largest = probe->args.members >> rank & 1 ? rank + 1 : largest;
    }
    if (board != NULL) {
        status = iris_memcpy_sync(probe->iris, board, probe->args.board,
                                  sizeof *board);
    }
    if (status == IRIS_OK) {
#define CHECK(name, c_type, arg)                          \
    check_cell(found_p, #name, "add", count,              \
               probe_float_##name(board->name[0]));       \
    check_cell(found_p, #name, "compare-and-swap", count, \
               probe_float_##name(board->name[1]));       \
    check_cell(found_p, #name, "max", largest,            \
               probe_float_##name(board->name[2]));
        IRIS_TYPES(CHECK, )
#undef CHECK
    }
    free(board);
    return status;
}

/* ---- A copy beside a waiting kernel ---- */

/* Copies from host memory to this rank's, from there to the peer's, and sets
 * the peer's flag, all on the context's own stream. */
static iris_status_t send(struct probe *probe, const uint64_t *words)
{
    struct probe_args *args = &probe->args;
    struct probe_board *board = args->board;
    iris_status_t status =
        iris_memcpy(probe->iris, board->out, words, COPIED_BYTES, NULL);

    if (status == IRIS_OK) {
        status = iris_put_on_stream(probe->iris, board->in, board->out,
                                    COPIED_BYTES, args->peer, NULL);
    }
    if (status == IRIS_OK) {
        status = iris_signal_on_stream(probe->iris, &board->flag, 1, args->peer,
                                       NULL);
    }
    return status == IRIS_OK ? iris_stream_synchronize(probe->iris, NULL)
                             : status;
}

static void fill(uint64_t *words, int from, uint64_t salt)
{
    for (size_t i = 0; i < COPIED_BYTES / sizeof *words; i++) {
        words[i] = probe_pattern(from, salt, i);
    }
}

/* Each rank's kernel waits for the flag that the other's stream sets behind its
 * copies, so they have to pass a kernel that waits. */
static iris_status_t run_copy(struct probe *probe, struct probe_found *found_p)
{
    const struct probe_args *args = &probe->args;
    uint64_t *words = malloc(COPIED_BYTES);
    iris_status_t status = IRIS_ERR_NO_MEMORY;

    (void)found_p;
    if (words != NULL) {
        fill(words, args->rank, args->salt);
        status = iris_launch(probe->iris, probe_hold, 1, LANES, args,
                             sizeof *args, probe->stream);
    }
    status = status == IRIS_OK ? send(probe, words) : status;
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(probe->iris, probe->stream);
    }
    free(words);
    return status;
}

static iris_status_t verify_copy(struct probe *probe,
                                 struct probe_found *found_p)
{
    const struct probe_args *args = &probe->args;
    uint64_t *words = malloc(2 * COPIED_BYTES);
    iris_status_t status = IRIS_ERR_NO_MEMORY;
    size_t count = COPIED_BYTES / sizeof *words, i = 0;

    if (words != NULL) {
        fill(words, args->peer, args->salt);
        status = iris_memcpy_sync(probe->iris, words + count, args->board->in,
                                  COPIED_BYTES);
    }
    while (status == IRIS_OK && i < count && words[i] == words[count + i]) {
        i++;
    }
    if (status == IRIS_OK && i < count) {
        found_p->verdict = PROBE_WRONG;
        snprintf(found_p->text, sizeof found_p->text,
                 "rank %d, word %zu of %zu: expected 0x%" PRIx64
                 ", found 0x%" PRIx64,
                 args->rank, i, count, words[i], words[count + i]);
    }
    free(words);
    return status;
}

/* ---- Bandwidth ---- */

#define BLOCK 256u /* lanes */
#define RUNS 3     /* the fastest counts; one more run comes before them */

/* One copy of all the bytes; by a stream if there are no workgroups. */
static iris_status_t copy(struct probe *probe, unsigned workgroups)
{
    struct probe_args *args = &probe->args;
    iris_status_t status;

    if (workgroups != 0) {
        return launch(probe, probe_put, workgroups, BLOCK);
    }
    status = iris_put_on_stream(probe->iris, args->in, args->out, args->bytes,
                                args->peer, NULL);
    return status == IRIS_OK ? iris_stream_synchronize(probe->iris, NULL)
                             : status;
}

/* In GB/s. */
static iris_status_t measure(struct probe *probe, unsigned workgroups,
                             double *rate_p)
{
    iris_status_t status = copy(probe, workgroups);

    *rate_p = 0;
    for (int i = 0; i < RUNS && status == IRIS_OK; i++) {
        int64_t start = iris_i_now_ns();
        double rate;

        status = copy(probe, workgroups);
        rate = (double)probe->args.bytes / (double)(iris_i_now_ns() - start);
        *rate_p = rate > *rate_p ? rate : *rate_p;
    }
    return status;
}

/* How fast one rank's kernels of 1, 4, 16 ... workgroups write to the other,
 * and how fast a copy on a stream writes there. The lower rank copies. (Whether
 * each way of copying is right, the other checks say.) */
static iris_status_t run_rate(struct probe *probe, struct probe_found *found_p)
{
    unsigned most = (unsigned)iris_num_cus(probe->iris), workgroups = 1;
    iris_status_t status = launch(probe, probe_fill, PROBE_GRID, BLOCK);
    double rate;
    int length;

    if (probe->args.rank != probe->first || status != IRIS_OK ||
        (status = measure(probe, 0, &rate)) != IRIS_OK) {
        return status;
    }
    length = snprintf(found_p->text, sizeof found_p->text, "stream:%.4g", rate);
    do {
        if ((status = measure(probe, workgroups, &rate)) != IRIS_OK) {
            return status;
        }
        length += snprintf(found_p->text + length,
                           sizeof found_p->text - (size_t)length, " %u:%.4g",
                           workgroups, rate);
        workgroups = workgroups == most      ? most + 1
                     : workgroups * 4 < most ? workgroups * 4
                                             : most;
    } while (workgroups <= most);
    return IRIS_OK;
}

static iris_status_t verify_rate(struct probe *probe,
                                 struct probe_found *found_p)
{
    return probe->args.rank == probe->first
               ? IRIS_OK
               : launch_and_read(probe, probe_verify, PROBE_GRID, BLOCK,
                                 found_p);
}

const struct probe_check probe_checks[] = {
    {"context", PROBE_OF_PAIRS, run_context, NULL},
    {"flag", PROBE_OF_PAIRS, run_flag, NULL},
    {"data", PROBE_OF_PAIRS, run_data, NULL},
    {"atomics", PROBE_OF_PAIRS, run_atomics, verify_atomics},
    {"atomics", PROBE_OF_MORE, run_atomics, verify_atomics},
    {"copy", PROBE_OF_PAIRS, run_copy, verify_copy},
    {"library", PROBE_OF_ALL, probe_library_run, NULL},
    {"bandwidth", PROBE_OF_PAIRS, run_rate, verify_rate},
    {NULL, PROBE_OF_PAIRS, NULL, NULL},
};
