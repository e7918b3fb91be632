/* SPDX-License-Identifier: MIT
 *
 * Rank 0's check of a hello: whether it belongs to this job, and whether its
 * rank has the same settings as rank 0.
 */
#include "config.h"

#include "control/internal.h"

#include <stdio.h>
#include <string.h>

static iris_status_t fail_other_namespace(const struct iris_hello *hello)
{
    return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                       "rank %d is in another PID namespace (container) than "
                       "rank 0, so that they cannot watch each other; run all "
                       "ranks in one container, or with --pid=host",
                       hello->rank);
}

/* If no backend was set, one of the two ranks may have found no GPU. */
static iris_status_t fail_other_backend(const struct iris_hello *hello,
                                        const struct iris_hello *own)
{
    const struct iris_hello *without = hello->message[0] != '\0' ? hello : own;
    char why[IRIS_MESSAGE_BYTES] = "";

    if (without->message[0] != '\0') {
        snprintf(why, sizeof why, "; rank %d: %.700s", without->rank,
                 without->message);
    }
    return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                       "rank %d uses backend %.16s, rank 0 uses %.16s; set "
                       "IRIS_BACKEND alike on all ranks%s",
                       hello->rank, hello->backend, own->backend, why);
}

iris_status_t
iris_i_rendezvous_check_hello(const struct iris_rendezvous *rendezvous,
                              const struct iris_hello *hello)
{
    const struct iris_hello *own = &rendezvous->hellos[0];
    int rank = hello->rank;

    if (hello->magic != own->magic || hello->version != own->version) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "pid %d uses another version of Iris than rank 0",
                           hello->pid);
    }
    /* A rank that could not start may not know the number of ranks. */
    if (hello->num_ranks != own->num_ranks && hello->status == IRIS_OK) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d believes in a job of %d ranks, rank 0 in "
                           "one of %d; give all the same IRIS_NUM_RANKS",
                           rank, hello->num_ranks, own->num_ranks);
    }
    if (rank < 0 || rank >= own->num_ranks) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "rank %d is out of range: the job has %d ranks",
                           rank, own->num_ranks);
    }
    if (rendezvous->hellos[rank].magic != 0) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "rank %d came twice: pid %d and pid %d; give each "
                           "its own IRIS_RANK",
                           rank, rendezvous->hellos[rank].pid, hello->pid);
    }
    if (iris_i_hello_same_host(hello, own) &&
        hello->pid_namespace != own->pid_namespace) {
        return fail_other_namespace(hello);
    }
    return IRIS_OK;
}

/* "auto" means "socket". */
static const char *find_transport(const struct iris_hello *hello)
{
    return strcmp(hello->transport, "auto") == 0 ? "socket" : hello->transport;
}

iris_status_t
iris_i_rendezvous_compare(const struct iris_rendezvous *rendezvous,
                          const struct iris_hello *hello)
{
    const struct iris_hello *own = &rendezvous->hellos[0];

    if (hello->status != IRIS_OK) {
        return iris_i_fail(NULL, (iris_status_t)hello->status,
                           "rank %d could not start: %.900s", hello->rank,
                           hello->message);
    }
    if (own->status != IRIS_OK) {
        return IRIS_OK;
    }
    if (strcmp(hello->backend, own->backend) != 0) {
        return fail_other_backend(hello, own);
    }
    if ((hello->host == 0) != (own->host == 0)) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "only one of rank %d and rank 0 knows of several "
                           "hosts; set IRIS_ROOT alike on all ranks",
                           hello->rank);
    }
    if (hello->nodes != own->nodes) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d has IRIS_NODES=%d, rank 0 has "
                           "IRIS_NODES=%d; set it alike on all ranks",
                           hello->rank, hello->nodes, own->nodes);
    }
    if (strcmp(find_transport(hello), find_transport(own)) != 0) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d has IRIS_TRANSPORT=%.15s, rank 0 has "
                           "IRIS_TRANSPORT=%.15s; set it alike on all ranks",
                           hello->rank, hello->transport, own->transport);
    }
    if (hello->heap_bytes != own->heap_bytes) {
        return iris_i_fail(
            NULL, IRIS_ERR_MISMATCH,
            "rank %d has a heap of %llu bytes, rank 0 of %llu; "
            "set IRIS_HEAP_SIZE and IRIS_TRACE to the same values on all ranks",
            hello->rank, (unsigned long long)hello->heap_bytes,
            (unsigned long long)own->heap_bytes);
    }
    if (hello->check != own->check) { /* otherwise offsets would differ */
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d checks other things than rank 0; set "
                           "IRIS_CHECK alike on all ranks",
                           hello->rank);
    }
    return IRIS_OK;
}
