/* SPDX-License-Identifier: MIT
 *
 * The contract of backends, of each that this build has and that runs here.
 */
#include "config.h"

#include <iris/device.h>

#include "backend/backend.h"
#include "support/harness.h"
#include "support/leaks.h"
#include "base/log.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES ((size_t)1 << 20)
#define PIECE 65536

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

/* The `i`th backend of this build that can run here; NULL after the last. */
static const struct iris_backend_ops *usable(size_t i)
{
    const struct iris_backend_ops *ops;
    struct iris_settings settings;
    size_t at = 0;

    assert_int_equal(iris_i_settings_load(NULL, &settings), IRIS_OK);
    while (iris_i_backend_at(at++, &settings, &ops) != NULL) {
        if (ops != NULL && ops->probe() == IRIS_OK && i-- == 0) {
            return ops;
        }
    }
    return NULL;
}

static iris_status_t keep_waiting(void *core)
{
    atomic_int *left = core;

    if (atomic_fetch_sub(left, 1) > 0) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_PEER_LOST, "enough of waiting");
}

static struct iris_backend *open_one(const struct iris_backend_ops *ops,
                                     void *core)
{
    struct iris_backend_params params = {.num_ranks = 1,
                                         .sim_cus = 3,
                                         .sim_device = "cpu",
                                         .allocator = "pool",
                                         .heap_bytes = BYTES,
                                         .share_device = 1,
                                         .core = core};
    struct iris_backend *backend = NULL;

    params.keep_waiting = core == NULL ? NULL : keep_waiting;
    assert_int_equal(ops->open(&params, &backend), IRIS_OK);
    assert_ptr_equal(backend->ops, ops);
    return backend;
}

/* Runs `body` on an open backend of each kind that can run here. */
static void walk(void (*body)(struct iris_backend *))
{
    const struct iris_backend_ops *ops;
    size_t ran = 0;

    while ((ops = usable(ran)) != NULL) {
        struct iris_backend *backend;
        struct leaks before;

        leaks_note(&before);
        backend = open_one(ops, NULL);
        body(backend);
        ops->close(backend);
        assert_int_equal(leaks_found(&before), 0);
        ran++;
    }
    assert_true(ran > 0);
}

static void every_backend_fills_every_mandatory_slot(void **state)
{
    const struct iris_backend_ops *ops;

    (void)state;
    for (size_t i = 0; (ops = usable(i)) != NULL; i++) {
        assert_non_null(ops->name);
        assert_true(ops->probe && ops->open && ops->close);
        assert_true(ops->heap_alloc && ops->heap_free && ops->heap_export);
        assert_true(ops->heap_import && ops->heap_unimport);
        assert_true(ops->stream_create && ops->stream_destroy &&
                    ops->stream_synchronize);
        assert_true(ops->copy && ops->set && ops->launch && ops->device_info);
        if (ops->native != NULL) {
            const struct iris_native_ops *native = ops->native;

            assert_true(native->stream_wrap && native->stream_native);
            assert_true(native->signal && native->wait);
            assert_true(native->capture_begin && native->capture_end);
            assert_true(native->graph_launch && native->graph_free);
        }
    }
}

static void body_device_info(struct iris_backend *backend)
{
    struct iris_device_info info;

    memset(&info, 0, sizeof info);
    backend->ops->device_info(backend, &info);
    assert_true(strlen(info.name) > 0);
    assert_true(info.num_cus >= 1);
    assert_true(info.wavefront >= 1);
    assert_true(info.page_bytes >= 1);
    if (strcmp(backend->ops->name, "sim") == 0) {
        assert_int_equal(info.num_cus, 3);
        assert_int_equal(info.wavefront, 1);
    }
}

static void a_device_says_what_it_is(void **state)
{
    (void)state;
    walk(body_device_info);
}

static void heap_make(struct iris_backend *backend,
                      struct iris_heap_region *region_p)
{
    const struct iris_backend_ops *ops = backend->ops;

    assert_int_equal(ops->heap_alloc(backend, BYTES, region_p), IRIS_OK);
    assert_non_null(region_p->base);
    assert_int_equal(region_p->bytes, BYTES);
    if (ops->heap_back != NULL) {
        assert_int_equal(ops->heap_back(backend, region_p, 0, BYTES), IRIS_OK);
    }
}

static void finish(struct iris_stream *stream)
{
    assert_int_equal(stream->backend->ops->stream_synchronize(stream), IRIS_OK);
}

static void body_heap(struct iris_backend *backend)
{
    const struct iris_backend_ops *ops = backend->ops;
    unsigned char host[PIECE], zero[PIECE] = {0};
    struct iris_heap_region region;
    struct iris_heap_handle handle;
    struct iris_stream *stream;
    void *mapped = NULL;

    heap_make(backend, &region);
    assert_int_equal(ops->heap_export(backend, &region, &handle), IRIS_OK);
    assert_true(handle.num_bytes <= IRIS_HANDLE_BYTES);
    assert_int_equal(ops->heap_import(backend, &handle, BYTES, &mapped),
                     IRIS_OK);
    assert_int_equal(ops->stream_create(backend, &stream), IRIS_OK);
    memset(host, 1, sizeof host);
    ops->copy(stream, host, region.base, PIECE);
    finish(stream);
    assert_memory_equal(host, zero, PIECE); /* a heap starts as zeros */
    /* Written through one address, read through the other. */
    ops->set(stream, (char *)mapped + PIECE, 7, PIECE);
    ops->copy(stream, host, (char *)region.base + PIECE, PIECE);
    finish(stream);
    assert_int_equal(host[0], 7);
    assert_int_equal(host[PIECE - 1], 7);
    ops->stream_destroy(stream);
    ops->heap_unimport(backend, mapped, BYTES);
    if (handle.fd >= 0) {
        close(handle.fd);
    }
    ops->heap_free(backend, &region);
}

static void a_heap_can_be_named_and_mapped_again(void **state)
{
    (void)state;
    walk(body_heap);
}

static void body_stream(struct iris_backend *backend)
{
    const struct iris_backend_ops *ops = backend->ops;
    struct iris_heap_region region;
    struct iris_stream *streams[2];
    struct fill_args args;
    unsigned char host[1000];

    heap_make(backend, &region);
    for (int i = 0; i < 2; i++) {
        struct iris_launch launch = {
            .kernel = fill, .grid = 5, .block = 64, .args = &args};

        assert_int_equal(ops->stream_create(backend, &streams[i]), IRIS_OK);
        assert_ptr_equal(streams[i]->backend, backend);
        args = (struct fill_args){(unsigned char *)region.base + i * PIECE,
                                  sizeof host, (unsigned char)(i + 1)};
        assert_int_equal(ops->launch(streams[i], &launch), IRIS_OK);
        memset(&args, 0xff, sizeof args); /* it was copied */
    }
    for (int i = 0; i < 2; i++) {
        ops->copy(streams[i], host, (char *)region.base + i * PIECE,
                  sizeof host);
        finish(streams[i]);
        for (size_t j = 0; j < sizeof host; j++) {
            assert_int_equal(host[j], i + 1);
        }
        ops->stream_destroy(streams[i]);
    }
    ops->heap_free(backend, &region);
}

static void streams_run_kernels_and_copies_in_order(void **state)
{
    (void)state;
    walk(body_stream);
}

static void body_failures(struct iris_backend *backend)
{
    const struct iris_backend_ops *ops = backend->ops;
    struct iris_heap_region region, before;
    struct iris_heap_handle handle;
    void *mapped = &handle;

    memset(&region, 0x5a, sizeof region);
    before = region;
    assert_int_not_equal(ops->heap_alloc(backend, (size_t)1 << 60, &region),
                         IRIS_OK);
    assert_memory_equal(&region, &before, sizeof region);
    memset(&handle, 0, sizeof handle);
    handle.fd = -1;
    handle.num_bytes = 3;
    assert_int_not_equal(ops->heap_import(backend, &handle, BYTES, &mapped),
                         IRIS_OK);
    assert_ptr_equal(mapped, &handle);
    heap_make(backend, &region);
    assert_int_equal(ops->heap_export(backend, &region, &handle), IRIS_OK);
    assert_int_not_equal(ops->heap_import(backend, &handle, 2 * BYTES, &mapped),
                         IRIS_OK);
    assert_ptr_equal(mapped, &handle);
    if (handle.fd >= 0) {
        close(handle.fd);
    }
    ops->heap_free(backend, &region);
}

static void failures_leave_outputs_alone(void **state)
{
    (void)state;
    walk(body_failures);
}

static void body_kernel_of_another_target(struct iris_backend *backend)
{
    static const struct iris_kernel none = {.name = "none", .args_bytes = 1};
    struct iris_launch launch = {
        .kernel = &none, .grid = 1, .block = 1, .args = ""};
    struct iris_stream *stream;

    assert_int_equal(backend->ops->stream_create(backend, &stream), IRIS_OK);
    assert_int_equal(backend->ops->launch(stream, &launch),
                     IRIS_ERR_UNSUPPORTED);
    assert_true(harness_message_has("none"));
    finish(stream);
    backend->ops->stream_destroy(stream);
}

static void a_kernel_of_another_target_is_refused(void **state)
{
    (void)state;
    walk(body_kernel_of_another_target);
}

/* What a kernel makes of 7. */
static int run_plugin(struct iris_backend *backend,
                      const struct iris_kernel *kernel)
{
    const struct iris_backend_ops *ops = backend->ops;
    struct iris_heap_region region;
    struct iris_stream *stream;
    struct fill_args args = {.count = 1, .value = 7};
    struct iris_launch launch = {
        .kernel = kernel, .grid = 1, .block = 1, .args = &args};
    unsigned char seen = 0;

    heap_make(backend, &region);
    args.out = region.base;
    assert_int_equal(ops->stream_create(backend, &stream), IRIS_OK);
    assert_int_equal(ops->launch(stream, &launch), IRIS_OK);
    assert_int_equal(ops->copy(stream, &seen, region.base, 1), IRIS_OK);
    finish(stream);
    ops->stream_destroy(stream);
    ops->heap_free(backend, &region);
    return seen;
}

/* The program unloads an object with kernels and gets another in its place. */
static void body_reload(struct iris_backend *backend)
{
    static struct iris_kernel plugin;
    struct iris_gpu_image image = {.image = &plugin};

#ifndef IRIS_I_STAND_IN
    if (backend->ops->native != NULL) {
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

static void
a_kernel_in_the_place_of_one_that_went_is_the_one_that_runs(void **state)
{
    (void)state;
    walk(body_reload);
}

/* The device context of a job of one rank, at the heap's start. */
static void write_context(struct iris_stream *stream,
                          const struct iris_heap_region *region)
{
    const struct iris_backend_ops *ops = stream->backend->ops;
    int64_t words[IRIS_CONTEXT_ALL_WORDS(1)] = {
        0, 1, (int64_t)(uintptr_t)region->base};
    struct iris_device_info info = {.watch = 0};

    ops->device_info(stream->backend, &info);
    words[IRIS_CONTEXT_OWN(1, IRIS_CONTEXT_OWN_WATCH)] = (int64_t)info.watch;
    assert_int_equal(ops->copy(stream, region->base, words, sizeof words),
                     IRIS_OK);
    finish(stream);
}

static void end_a_wait(const struct iris_backend_ops *ops)
{
    atomic_int looks = INT_MAX;
    struct iris_backend *backend = open_one(ops, &looks);
    struct iris_heap_region region;
    struct iris_stream *stream;
    struct stuck_args args;
    struct iris_launch launch = {
        .kernel = stuck, .grid = 2, .block = 1, .args = &args};

    heap_make(backend, &region);
    assert_int_equal(ops->stream_create(backend, &stream), IRIS_OK);
    write_context(stream, &region);
    atomic_store(&looks, 3);
    args.context = region.base;
    args.never = (uint64_t *)((char *)region.base + PIECE);
    assert_int_equal(ops->launch(stream, &launch), IRIS_OK);
    assert_int_equal(ops->stream_synchronize(stream), IRIS_ERR_PEER_LOST);
    assert_true(harness_message_has("enough of waiting"));
    finish(stream); /* the error comes once */
    ops->stream_destroy(stream);
    ops->heap_free(backend, &region);
    ops->close(backend);
}

static void waits_end_when_the_core_says_so(void **state)
{
    const struct iris_backend_ops *ops;
    struct leaks before;

    (void)state;
    leaks_note(&before);
    for (size_t i = 0; (ops = usable(i)) != NULL; i++) {
        end_a_wait(ops);
    }
    assert_int_equal(leaks_found(&before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_backend_fills_every_mandatory_slot),
        cmocka_unit_test(a_device_says_what_it_is),
        cmocka_unit_test(a_heap_can_be_named_and_mapped_again),
        cmocka_unit_test(streams_run_kernels_and_copies_in_order),
        cmocka_unit_test(failures_leave_outputs_alone),
        cmocka_unit_test(a_kernel_of_another_target_is_refused),
        cmocka_unit_test(
            a_kernel_in_the_place_of_one_that_went_is_the_one_that_runs),
        cmocka_unit_test(waits_end_when_the_core_says_so),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
