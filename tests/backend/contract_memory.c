/* SPDX-License-Identifier: MIT
 *
 * The contract of backends: heaps, and copies of rows between them.
 */
#include "config.h"

#include "backend/contract.h"

#include "support/harness.h"

#include <string.h>
#include <unistd.h>

static void body_heap(struct iris_backend *backend)
{
    unsigned char host[CONTRACT_PIECE], zero[CONTRACT_PIECE] = {0};
    struct iris_heap_region region;
    struct iris_heap_handle handle;
    struct iris_stream *stream;
    void *mapped = NULL;

    contract_heap_make(backend, &region);
    assert_int_equal(iris_i_memory_export(backend, &region, &handle), IRIS_OK);
    assert_true(handle.num_bytes <= IRIS_HANDLE_BYTES);
    assert_int_equal(
        iris_i_memory_import(backend, &handle, CONTRACT_BYTES, &mapped),
        IRIS_OK);
    assert_int_equal(iris_i_device_stream_create(backend, &stream), IRIS_OK);
    memset(host, 1, sizeof host);
    iris_i_queue_copy(stream, host, region.base, CONTRACT_PIECE);
    contract_finish(stream);
    assert_memory_equal(host, zero,
                        CONTRACT_PIECE); /* a heap starts as zeros */
    /* Written through one address, read through the other. */
    iris_i_queue_set(stream, (char *)mapped + CONTRACT_PIECE, 7,
                     CONTRACT_PIECE);
    iris_i_queue_copy(stream, host, (char *)region.base + CONTRACT_PIECE,
                      CONTRACT_PIECE);
    contract_finish(stream);
    assert_int_equal(host[0], 7);
    assert_int_equal(host[CONTRACT_PIECE - 1], 7);
    iris_i_device_stream_destroy(stream);
    iris_i_memory_unimport(backend, mapped, CONTRACT_BYTES);
    if (handle.fd >= 0) {
        close(handle.fd);
    }
    iris_i_memory_free(backend, &region);
}

void a_heap_can_be_named_and_mapped_again(void **state)
{
    contract_walk(body_heap);
}

#define ROWS 7
#define ROW_BYTES 60
#define SRC_PITCH 100
#define DST_PITCH 132

/* Rows of the heap's start, to behind its first piece. A backend may leave all
 * such copies to the core, or some; those it has to leave memory alone. */
static void body_rows(struct iris_backend *backend)
{
    unsigned char host[ROWS * DST_PITCH], want[ROWS * DST_PITCH];
    struct iris_heap_region region;
    struct iris_stream *stream;
    struct iris_copy_rows rows = {.dst_pitch = DST_PITCH,
                                  .src_pitch = SRC_PITCH,
                                  .row_bytes = ROW_BYTES,
                                  .rows = ROWS};
    iris_status_t status;

    contract_heap_make(backend, &region);
    assert_int_equal(iris_i_device_stream_create(backend, &stream), IRIS_OK);
    for (size_t i = 0; i < sizeof host; i++) {
        host[i] = (unsigned char)(i * 7 + i / 256);
    }
    iris_i_queue_copy(stream, region.base, host, ROWS * SRC_PITCH);
    rows.src = region.base;
    rows.dst = (char *)region.base + CONTRACT_PIECE;
    iris_i_queue_set(stream, rows.dst, 0x5a, sizeof host);
    status = iris_i_queue_copy_rows(stream, &rows);
    assert_true(status == IRIS_OK || status == IRIS_ERR_UNSUPPORTED);
    memset(want, 0x5a, sizeof want);
    for (size_t r = 0; r < ROWS && status == IRIS_OK; r++) {
        memcpy(want + r * DST_PITCH, host + r * SRC_PITCH, ROW_BYTES);
    }
    /* The stream's next copy comes behind it. */
    iris_i_queue_copy(stream, host, rows.dst, sizeof host);
    contract_finish(stream);
    assert_memory_equal(host, want, sizeof host);
    iris_i_device_stream_destroy(stream);
    iris_i_memory_free(backend, &region);
}

void rows_are_copied_from_pitch_to_pitch(void **state)
{
    contract_walk(body_rows);
}

static void body_failures(struct iris_backend *backend)
{
    struct iris_heap_region region, before;
    struct iris_heap_handle handle;
    void *mapped = &handle;

    memset(&region, 0x5a, sizeof region);
    before = region;
    assert_int_not_equal(iris_i_memory_alloc(backend, (size_t)1 << 60, &region),
                         IRIS_OK);
    assert_memory_equal(&region, &before, sizeof region);
    memset(&handle, 0, sizeof handle);
    handle.fd = -1;
    handle.num_bytes = 3;
    assert_int_not_equal(
        iris_i_memory_import(backend, &handle, CONTRACT_BYTES, &mapped),
        IRIS_OK);
    assert_ptr_equal(mapped, &handle);
    contract_heap_make(backend, &region);
    assert_int_equal(iris_i_memory_export(backend, &region, &handle), IRIS_OK);
    assert_int_not_equal(
        iris_i_memory_import(backend, &handle, 2 * CONTRACT_BYTES, &mapped),
        IRIS_OK);
    assert_ptr_equal(mapped, &handle);
    if (handle.fd >= 0) {
        close(handle.fd);
    }
    iris_i_memory_free(backend, &region);
}

void failures_leave_outputs_alone(void **state)
{
    contract_walk(body_failures);
}
