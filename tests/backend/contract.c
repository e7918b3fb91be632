/* SPDX-License-Identifier: MIT
 *
 * The contract of backends, below the public API.
 */
#include "config.h"

#include "backend/contract.h"

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++ */
#include "backend/backend.h"
#include "backend/calls.h"
#include "base/base.h"
#endif

#include "support/harness.h"
#include "support/leaks.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes of a heap, and a part of it. */
#define CONTRACT_BYTES ((size_t)1 << 20)
#define CONTRACT_PIECE 65536

struct fill_args {
    unsigned char *out;
    size_t count;
    unsigned char value;
};

IRIS_KERNEL(fill, struct fill_args)
{
    IRIS_LANES (wg, i, args->count) {
        args->out[i] = args->value;
    }
}

IRIS_KERNEL(fill_next, struct fill_args)
{
    IRIS_LANES (wg, i, args->count) {
        args->out[i] = (unsigned char)(args->value + 1);
    }
}

struct stuck_args {
    const int64_t *context;
    uint64_t *never;
};

IRIS_KERNEL(stuck, struct stuck_args)
{
    (void)iris_wait_until_u64(iris_dev_init(args->context), args->never,
                              IRIS_CMP_NE, 0);
}

static const char *wanted; /* NULL: all */

/* The `i`th of the backends that are wanted and can run here; NULL after the
 * last. */
static const struct iris_backend_type *usable(size_t i)
{
    const struct iris_backend_type *type;
    struct iris_settings settings;
    size_t at = 0;
    int num_devices;

    assert_int_equal(iris_i_settings_load(NULL, &settings), IRIS_OK);
    while (iris_i_registry_at(at++, settings.module_dir.text, &type) != NULL) {
        if (type != NULL &&
            (wanted == NULL || strcmp(type->name, wanted) == 0) &&
            type->probe(&num_devices) == IRIS_OK && i-- == 0) {
            return type;
        }
    }
    return NULL;
}

static iris_status_t keep_waiting(void *core)
{
    atomic_int *left = core;

    if (left == NULL || atomic_fetch_sub(left, 1) > 0) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_PEER_LOST, "enough of waiting");
}

static void describe_late(void *core, const void *word, char *text,
                          size_t bytes)
{
    text[0] = '\0';
}

static void note_wait(void *core, struct iris_wait_note *note)
{
}

static int locate(void *core, const void *address,
                  struct iris_location *place_p)
{
    return 0;
}

#if IRIS_ON_CPU
static const struct iris_core_ops core_ops = {
    .note_wait = note_wait,
    .wait_over = note_wait,
    .describe_late = describe_late,
    .locate = locate,
};
#endif

/* At most one backend is open at a time. */
static struct iris_waiter waiter = {.fate = keep_waiting};

static struct iris_backend *open_one(const struct iris_backend_type *type,
                                     void *core)
{
    struct iris_backend_params params = {.num_ranks = 1,
                                         .num_cus = 3,
                                         .heap_bytes = CONTRACT_BYTES,
                                         .ranks_on_device = 2,
                                         .core_ops = &core_ops,
                                         .core = core,
                                         .waiter = &waiter};
    struct iris_backend *backend = NULL;

    waiter.arg = core;
    assert_int_equal(iris_i_device_open(type, &params, &backend), IRIS_OK);
    assert_ptr_equal(backend->type, type);
    return backend;
}

/* Runs `body` on an open backend of each kind that can run here. */
static void contract_walk(void (*body)(struct iris_backend *))
{
    const struct iris_backend_type *type;
    size_t ran = 0;

    while ((type = usable(ran)) != NULL) {
        struct iris_backend *backend;
        struct leaks before;

        leaks_note(&before);
        backend = open_one(type, NULL);
        body(backend);
        iris_i_device_close(backend);
        assert_int_equal(leaks_found(&before), 0);
        ran++;
    }
    assert_true(ran > 0);
}

/* Every slot of a table is a pointer. */
static void check_table(const void *table, size_t bytes)
{
    void (*const *slots)(void) = table;

    for (size_t i = 0; i < bytes / sizeof slots[0]; i++) {
        assert_true(slots[i] != NULL);
    }
}

static void body_slots(struct iris_backend *backend)
{
    assert_non_null(backend->type->name);
    assert_true(backend->type->probe && backend->type->survey &&
                backend->type->open);
    check_table(backend->device, sizeof *backend->device);
    check_table(backend->memory, sizeof *backend->memory);
    check_table(backend->queue, sizeof *backend->queue);
}

static TEST(every_backend_fills_every_slot)
{
    contract_walk(body_slots);
}

static IRIS_UNUSED struct iris_device_info
info_of(const struct iris_backend *backend)
{
    struct iris_device_info info;

    iris_i_device_info(backend, &info);
    return info;
}

static void body_device_info(struct iris_backend *backend)
{
    struct iris_device_info info;

    memset(&info, 0, sizeof info);
    iris_i_device_info(backend, &info);
    assert_true(strlen(info.name) > 0);
    assert_true(info.num_cus >= 1);
    assert_true(info.wavefront >= 1);
    assert_true(info.page_bytes >= 1);
    if (strcmp(backend->type->name, "sim") == 0) {
        assert_int_equal(info.num_cus, 3);
        assert_int_equal(info.wavefront, 1);
    }
}

static TEST(a_device_says_what_it_is)
{
    contract_walk(body_device_info);
}

static void contract_heap_make(struct iris_backend *backend,
                               struct iris_heap_region *region_p)
{
    assert_int_equal(iris_i_memory_alloc(backend, CONTRACT_BYTES, region_p),
                     IRIS_OK);
    assert_non_null(region_p->base);
    assert_int_equal(region_p->bytes, CONTRACT_BYTES);
    assert_int_equal(
        iris_i_memory_commit(backend, region_p->base, CONTRACT_BYTES), IRIS_OK);
}

static void contract_finish(struct iris_stream *stream)
{
    uint64_t target = 0;

    assert_int_equal(iris_i_queue_synchronize(stream), IRIS_OK);
    assert_true(iris_i_queue_query(stream, &target));
}

static void body_stream(struct iris_backend *backend)
{
    struct iris_heap_region region;
    struct iris_stream *streams[2];
    struct fill_args args;
    unsigned char host[1000];

    contract_heap_make(backend, &region);
    for (int i = 0; i < 2; i++) {
        struct iris_launch launch = {
            .kernel = fill, .grid = 5, .block = 64, .args = &args};

        assert_int_equal(iris_i_device_stream_create(backend, &streams[i]),
                         IRIS_OK);
        assert_ptr_equal(streams[i]->backend, backend);
        args = (struct fill_args){(unsigned char *)region.base +
                                      i * CONTRACT_PIECE,
                                  sizeof host, (unsigned char)(i + 1)};
        assert_int_equal(iris_i_queue_launch(streams[i], &launch), IRIS_OK);
        memset(&args, 0xff, sizeof args); /* it was copied */
    }
    for (int i = 0; i < 2; i++) {
        iris_i_queue_copy(streams[i], host,
                          (char *)region.base + i * CONTRACT_PIECE,
                          sizeof host);
        contract_finish(streams[i]);
        for (size_t j = 0; j < sizeof host; j++) {
            assert_int_equal(host[j], i + 1);
        }
        iris_i_device_stream_destroy(streams[i]);
    }
    iris_i_memory_free(backend, &region);
}

static TEST(streams_run_kernels_and_copies_in_order)
{
    contract_walk(body_stream);
}

static void body_kernel_of_another_target(struct iris_backend *backend)
{
    static const struct iris_kernel none = {.name = "none", .args_bytes = 1};
    struct iris_launch launch = {
        .kernel = &none, .grid = 1, .block = 1, .args = ""};
    struct iris_stream *stream;

    assert_int_equal(iris_i_device_stream_create(backend, &stream), IRIS_OK);
    assert_int_equal(iris_i_queue_launch(stream, &launch),
                     IRIS_ERR_UNSUPPORTED);
    assert_true(harness_message_has("none"));
    contract_finish(stream);
    iris_i_device_stream_destroy(stream);
}

static TEST(a_kernel_of_another_target_is_refused)
{
    contract_walk(body_kernel_of_another_target);
}

/* What a kernel makes of 7. */
static int run_plugin(struct iris_backend *backend,
                      const struct iris_kernel *kernel)
{
    struct iris_heap_region region;
    struct iris_stream *stream;
    struct fill_args args = {.count = 1, .value = 7};
    struct iris_launch launch = {
        .kernel = kernel, .grid = 1, .block = 1, .args = &args};
    unsigned char seen = 0;

    contract_heap_make(backend, &region);
    args.out = region.base;
    assert_int_equal(iris_i_device_stream_create(backend, &stream), IRIS_OK);
    assert_int_equal(iris_i_queue_launch(stream, &launch), IRIS_OK);
    assert_int_equal(iris_i_queue_copy(stream, &seen, region.base, 1), IRIS_OK);
    contract_finish(stream);
    iris_i_device_stream_destroy(stream);
    iris_i_memory_free(backend, &region);
    return seen;
}

/* The program unloads an object with kernels and gets another in its place. */
static void body_reload(struct iris_backend *backend)
{
    static struct iris_kernel plugin;
    struct iris_gpu_image image = {.version = IRIS_GPU_IMAGE_VERSION,
                                   .image = &plugin};

#if !IRIS_HIP_FAKE
    if (info_of(backend).has_graphs) {
        return; /* an image is more than a struct */
    }
#endif
    for (int i = 0; i < 2; i++) {
        plugin = i == 0 ? fill[0] : fill_next[0];
        plugin.gpu_image = &plugin;
        iris_gpu_image_add(&image);
        assert_int_equal(run_plugin(backend, &plugin), 7 + i);
        assert_int_equal(run_plugin(backend, &plugin), 7 + i);
        iris_gpu_image_remove(&image);
    }
}

static TEST(a_kernel_in_the_place_of_one_that_went_is_the_one_that_runs)
{
    contract_walk(body_reload);
}

/* The device context of a job of one rank, at the heap's start. */
static void write_context(struct iris_stream *stream,
                          const struct iris_heap_region *region)
{
    int64_t words[IRIS_CONTEXT_ALL_WORDS(1)] = {
        0, 1, (int64_t)(uintptr_t)region->base};
    struct iris_device_info info = {.watch = 0};

    iris_i_device_info(stream->backend, &info);
    words[IRIS_CONTEXT_OWN(1, IRIS_CONTEXT_OWN_WATCH)] = (int64_t)info.watch;
    assert_int_equal(
        iris_i_queue_copy(stream, region->base, words, sizeof words), IRIS_OK);
    contract_finish(stream);
}

static void end_a_wait(const struct iris_backend_type *type)
{
    atomic_int looks = INT_MAX;
    struct iris_backend *backend = open_one(type, &looks);
    struct iris_heap_region region;
    struct iris_stream *stream;
    struct stuck_args args;
    struct iris_launch launch = {
        .kernel = stuck, .grid = 2, .block = 1, .args = &args};
    uint64_t target = 0;

    contract_heap_make(backend, &region);
    assert_int_equal(iris_i_device_stream_create(backend, &stream), IRIS_OK);
    write_context(stream, &region);
    atomic_store(&looks, 3);
    args.context = region.base;
    args.never = (uint64_t *)((char *)region.base + CONTRACT_PIECE);
    assert_int_equal(iris_i_queue_launch(stream, &launch), IRIS_OK);
    /* It is not done, unless launches are when they return. */
    assert_true(!iris_i_queue_query(stream, &target) ||
                iris_i_fault_check(backend) != IRIS_OK);
    assert_int_equal(iris_i_queue_synchronize(stream), IRIS_ERR_PEER_LOST);
    assert_true(iris_i_queue_query(stream, &target));
    assert_true(harness_message_has("enough of waiting"));
    assert_int_equal(iris_i_device_clear_fault(backend), IRIS_OK);
    contract_finish(stream);
    iris_i_device_stream_destroy(stream);
    iris_i_memory_free(backend, &region);
    iris_i_device_close(backend);
}

static TEST(waits_end_when_the_core_says_so)
{
    const struct iris_backend_type *type;
    struct leaks before;

    leaks_note(&before);
    for (size_t i = 0; (type = usable(i)) != NULL; i++) {
        end_a_wait(type);
    }
    assert_int_equal(leaks_found(&before), 0);
}

/* ---- Heaps, and copies of rows between them ---- */

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

static TEST(a_heap_can_be_named_and_mapped_again)
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

static TEST(rows_are_copied_from_pitch_to_pitch)
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

static TEST(failures_leave_outputs_alone)
{
    contract_walk(body_failures);
}

int contract_run(const char *name)
{
    wanted = name;
    return harness_run_file(__FILE__, harness_setup, harness_teardown);
}
