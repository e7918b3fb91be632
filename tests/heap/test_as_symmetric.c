/* SPDX-License-Identifier: MIT
 *
 * iris_as_symmetric(): a copy wherever memory cannot be shared, and where it
 * can, one memory behind two addresses, also after the program has freed its
 * own.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES ((size_t)100000)
#define PIECE ((size_t)2 << 20) /* what GPUs map memory in */

/* ---- Memory of the program's own, by the platform's calls ---- */

/* The CUDA driver's, as its ABI has them. */
struct cuda_location {
    int type;
    int id;
};

struct cuda_properties {
    int type;
    int handle_types;
    struct cuda_location location;
    void *unused;
    unsigned char flags[8];
};

struct cuda_access {
    struct cuda_location location;
    int flags;
};

struct native {
    int (*fake_map)(int device, size_t bytes, int exportable, void **ptr_p);
    void (*fake_unmap)(void *ptr, size_t bytes);
    int (*create)(unsigned long long *handle, size_t bytes,
                  const struct cuda_properties *prop, unsigned long long flags);
    int (*reserve)(uintptr_t *ptr, size_t bytes, size_t alignment,
                   uintptr_t hint, unsigned long long flags);
    int (*map)(uintptr_t ptr, size_t bytes, size_t offset,
               unsigned long long handle, unsigned long long flags);
    int (*set_access)(uintptr_t ptr, size_t bytes,
                      const struct cuda_access *access, size_t count);
    int (*unmap)(uintptr_t ptr, size_t bytes);
    int (*release)(unsigned long long handle);
    int (*free)(uintptr_t ptr, size_t bytes);
    int device;
};

static void *symbol(void *library, const char *name)
{
    return library == NULL ? NULL : dlsym(library, name);
}

/* Of the runtime that the library has loaded already. 0: none is known. */
static int find_native(const iris_t *iris, struct native *native)
{
    void *fake = dlopen("libfakehip.so", RTLD_NOW | RTLD_NOLOAD);
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    memset(native, 0, sizeof *native);
    native->device = iris_device_id(iris);
    *(void **)&native->fake_map = symbol(fake, "fakehip_map");
    *(void **)&native->fake_unmap = symbol(fake, "fakehip_unmap");
    *(void **)&native->create = symbol(cuda, "cuMemCreate");
    *(void **)&native->reserve = symbol(cuda, "cuMemAddressReserve");
    *(void **)&native->map = symbol(cuda, "cuMemMap");
    *(void **)&native->set_access = symbol(cuda, "cuMemSetAccess");
    *(void **)&native->unmap = symbol(cuda, "cuMemUnmap");
    *(void **)&native->release = symbol(cuda, "cuMemRelease");
    *(void **)&native->free = symbol(cuda, "cuMemAddressFree");
    return native->fake_map != NULL || native->free != NULL;
}

/* Returns 0, or what the runtime says. */
static int native_make(const struct native *native, size_t bytes,
                       int exportable, void **ptr_p)
{
    struct cuda_location here = {1, native->device};
    struct cuda_properties prop = {
        .type = 1, .handle_types = exportable != 0, .location = here};
    struct cuda_access access = {here, 3};
    unsigned long long handle = 0;
    uintptr_t ptr = 0;
    int error;

    if (native->fake_map != NULL) {
        return native->fake_map(native->device, bytes, exportable, ptr_p);
    }
    error = native->create(&handle, bytes, &prop, 0);
    error = error != 0 ? error : native->reserve(&ptr, bytes, PIECE, 0, 0);
    error = error != 0 ? error : native->map(ptr, bytes, 0, handle, 0);
    error = error != 0 ? error : native->set_access(ptr, bytes, &access, 1);
    error = error != 0 ? error : native->release(handle);
    *ptr_p = (void *)ptr;
    return error;
}

static void native_free(const struct native *native, void *ptr, size_t bytes)
{
    if (native->fake_unmap != NULL) {
        native->fake_unmap(ptr, bytes);
    } else {
        (void)native->unmap((uintptr_t)ptr, bytes);
        (void)native->free((uintptr_t)ptr, bytes);
    }
}

/* ---- The allocator ---- */

static int gpu; /* there is one */
static char allocator[32];

static int use_vmem(void **state)
{
    const char *before = getenv("IRIS_ALLOCATOR");

    snprintf(allocator, sizeof allocator, "%s", before == NULL ? "" : before);
    return gpu ? setenv("IRIS_ALLOCATOR", "vmem", 1) : 0;
}

static int use_what_was(void **state)
{
    return setenv("IRIS_ALLOCATOR", allocator, 1);
}

static int use_pool(void **state)
{
    return use_vmem(state) | setenv("IRIS_ALLOCATOR", "pool", 1);
}

/* ---- Everywhere ---- */

static int fill(iris_t *iris, void *ptr, int value, size_t bytes)
{
    CHECK_OK(iris_memset(iris, ptr, value, bytes, NULL));
    return iris_stream_synchronize(iris, NULL);
}

/* Every rank's memory, seen from here, is what that rank has filled it with. */
static int seen_everywhere(iris_t *iris, void *ptr, size_t bytes, int first)
{
    void *remote;

    CHECK_OK(iris_barrier(iris, NULL, NULL));
    for (int rank = 0; rank < iris_num_ranks(iris); rank++) {
        CHECK_OK(iris_as_remote(iris, ptr, rank, &remote));
        CHECK(harness_holds(iris, remote, bytes, first + rank));
    }
    return iris_barrier(iris, NULL, NULL);
}

static int copy_host(iris_t *iris, void *arg)
{
    unsigned char *own = malloc(BYTES), *back = malloc(BYTES);
    struct iris_heap_stats before, after;
    void *symmetric, *second;
    int shared = 7;

    CHECK(own != NULL && back != NULL);
    memset(own, 10 + iris_rank(iris), BYTES);
    CHECK_OK(iris_heap_stats(iris, &before));
    CHECK_OK(iris_as_symmetric(iris, own, BYTES, &symmetric, &shared));
    CHECK_EQUAL(shared, 0);
    CHECK(iris_is_symmetric(iris, symmetric));
    CHECK(!iris_is_symmetric(iris, own));
    CHECK_EQUAL(seen_everywhere(iris, symmetric, BYTES, 10), 0);
    /* It is a copy, once. */
    memset(own, 99, BYTES);
    CHECK(harness_holds(iris, symmetric, BYTES, 10 + iris_rank(iris)));
    CHECK_EQUAL(fill(iris, symmetric, 50 + iris_rank(iris), BYTES), 0);
    CHECK_EQUAL(own[BYTES - 1], 99);
    CHECK_OK(iris_as_symmetric(iris, own + 1, 1, &second, NULL));
    CHECK_EQUAL(seen_everywhere(iris, symmetric, BYTES, 50), 0);
    CHECK(harness_holds(iris, second, 1, 99));
    CHECK_OK(iris_free(iris, symmetric));
    CHECK_OK(iris_free(iris, second));
    CHECK_OK(iris_heap_stats(iris, &after));
    CHECK_EQUAL(after.used_bytes, before.used_bytes);
    free(own);
    free(back);
    return 0;
}

static TEST(memory_of_the_host_is_copied)
{
    harness_run_all(copy_host, NULL);
}

static TEST_WITH(memory_of_the_host_is_copied_with_vmem, use_vmem, use_what_was)
{
    harness_run_all(copy_host, NULL);
}

#define LARGE ((size_t)2 << 30) /* more than the heap */
static int misuse(iris_t *iris, void *arg)
{
    char own[64] = {0};
    void *symmetric = arg, *heap, *large = malloc(LARGE);
    int shared = 7;

    CHECK_OK(iris_malloc(iris, 64, &heap));
    CHECK_BAD(iris, iris_as_symmetric(iris, NULL, 64, &symmetric, &shared),
              IRIS_ERR_INVALID, "ptr is NULL", "pass the memory to share");
    CHECK_BAD(iris, iris_as_symmetric(iris, own, 0, &symmetric, &shared),
              IRIS_ERR_INVALID, "0 bytes", "pass at least 1");
    CHECK_BAD(iris, iris_as_symmetric(iris, own, 64, NULL, &shared),
              IRIS_ERR_INVALID, "symmetric_p is NULL", "pass where");
    CHECK_BAD(iris, iris_as_symmetric(iris, heap, 64, &symmetric, &shared),
              IRIS_ERR_INVALID, "is on the heap already", "use it directly");
    CHECK_STATUS(iris_as_symmetric(iris, own, SIZE_MAX, &symmetric, NULL),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(iris_as_symmetric(iris, large, LARGE, &symmetric, NULL),
                 IRIS_ERR_NO_MEMORY);
    free(large);
    CHECK_STATUS(iris_as_symmetric(NULL, own, 64, &symmetric, NULL),
                 IRIS_ERR_INVALID);
    CHECK(symmetric == arg && shared == 7);
    return iris_free(iris, heap) != IRIS_OK;
}

static TEST(what_makes_no_sense_is_refused)
{
    harness_run(1, misuse, NULL);
    harness_run(2, misuse, NULL);
}

static TEST_WITH(what_makes_no_sense_is_refused_with_vmem, use_vmem,
                 use_what_was)
{
    harness_run(1, misuse, NULL);
    harness_run(2, misuse, NULL);
}

static RANK_TEST(ranks_that_differ_are_told, 2)
{
    char own[64] = {0};
    void *symmetric;

    CHECK_STATUS(iris_as_symmetric(iris, own, iris_rank(iris) == 0 ? 64 : 32,
                                   &symmetric, NULL),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("iris_as_symmetric(bytes 64");
    /* One rank's mistake is everyone's error. */
    CHECK_STATUS(iris_as_symmetric(iris, iris_rank(iris) == 1 ? NULL : own, 64,
                                   &symmetric, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("ptr is NULL");
    CHECK_OK(iris_as_symmetric(iris, own, 64, &symmetric, NULL));
    CHECK(harness_holds(iris, symmetric, 64, 0));
    return iris_free(iris, symmetric);
}

/* ---- Shared ---- */

static void need_gpu(void)
{
    if (!gpu) {
        print_message("left out: sharing needs a GPU\n");
        skip();
    }
}

struct plan {
    size_t bytes;  /* of the allocation, on rank 0; */
    size_t more;   /* on each next rank, that much more */
    size_t offset; /* of what is passed, */
    size_t shift;  /* on each next rank, that much further */
    int exportable;
    int shared; /* expected */
};

struct own_memory {
    struct native native;
    size_t bytes;
    void *ptr;
    char *part;
};

/* 0: made; else left out, having said why. */
static int make_own(iris_t *iris, const struct plan *plan,
                    struct own_memory *own)
{
    size_t rank = (size_t)iris_rank(iris);
    int error;

    if (!harness_on_gpu(iris) || !find_native(iris, &own->native)) {
        return 1 + harness_left_out(__func__,
                                    "only CUDA and the fake runtime give it");
    }
    own->bytes = plan->bytes + rank * plan->more;
    error = native_make(&own->native, own->bytes, plan->exportable, &own->ptr);
    own->part = (char *)own->ptr + plan->offset + rank * plan->shift;
    return error == 0
               ? 0
               : harness_failed(__FILE__, __LINE__, "native", error, 0) + 1;
}

struct store_args {
    const int64_t *context;
    uint8_t *bytes; /* symmetric */
    int32_t to;
    uint8_t value;
};

IRIS_KERNEL(store_bytes, struct store_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_LANES (wg, i, BYTES) {
        iris_store_u8(dev, &args->bytes[i], args->value, args->to);
    }
}

/* One memory: what goes in at one address comes out at the other. */
static int one_memory(iris_t *iris, const struct own_memory *own,
                      void *symmetric)
{
    int rank = iris_rank(iris), num_ranks = iris_num_ranks(iris);
    struct store_args args = {.context = iris_device_context(iris),
                              .bytes = symmetric,
                              .to = (rank + 1) % num_ranks,
                              .value = (uint8_t)(60 + rank)};

    CHECK_EQUAL(fill(iris, symmetric, 40 + rank, BYTES), 0);
    CHECK(harness_holds(iris, own->part, BYTES, 40 + rank));
    CHECK_EQUAL(fill(iris, own->part, 50 + rank, BYTES), 0);
    CHECK_EQUAL(seen_everywhere(iris, symmetric, BYTES, 50), 0);
    /* A peer's kernel writes, and the program finds it in its own memory. */
    CHECK_OK(iris_launch(iris, store_bytes, 2, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK(harness_holds(iris, own->part, BYTES,
                        60 + (rank + num_ranks - 1) % num_ranks));
    CHECK_OK(iris_put_on_stream(iris, symmetric, symmetric, BYTES, rank, NULL));
    return iris_stream_synchronize(iris, NULL);
}

static int share(iris_t *iris, void *arg)
{
    const struct plan *plan = arg;
    struct own_memory own;
    void *symmetric, *inside, *remote;
    int rank = iris_rank(iris), shared = 7, made = make_own(iris, plan, &own);

    if (made != 0) {
        return made - 1;
    }
    CHECK_EQUAL(fill(iris, own.part, 30 + rank, BYTES), 0);
    CHECK_OK(iris_as_symmetric(iris, own.part, BYTES, &symmetric, &shared));
    CHECK_EQUAL(shared, plan->shared);
    CHECK(iris_is_symmetric(iris, symmetric));
    CHECK(!iris_is_symmetric(iris, own.part));
    CHECK_EQUAL(seen_everywhere(iris, symmetric, BYTES, 30), 0);
    if (!shared) {
        CHECK_EQUAL(fill(iris, own.part, 1, BYTES), 0);
        CHECK(harness_holds(iris, symmetric, BYTES, 30 + rank));
    } else {
        CHECK_EQUAL(one_memory(iris, &own, symmetric), 0);
        CHECK(!iris_is_symmetric(iris, (char *)symmetric + BYTES));
        CHECK_OK(
            iris_as_remote(iris, (char *)symmetric + BYTES - 1, 0, &remote));
        inside = (char *)symmetric + 8;
        CHECK_BAD(iris, iris_free(iris, inside), IRIS_ERR_INVALID,
                  "inside of memory that iris_as_symmetric shares",
                  "pass its address");
    }
    /* The program's own goes first. */
    CHECK_EQUAL(fill(iris, symmetric, 70 + rank, BYTES), 0);
    native_free(&own.native, own.ptr, own.bytes);
    CHECK_EQUAL(seen_everywhere(iris, symmetric, BYTES, 70), 0);
    CHECK_EQUAL(fill(iris, symmetric, 80 + rank, BYTES), 0);
    CHECK_EQUAL(seen_everywhere(iris, symmetric, BYTES, 80), 0);
    CHECK_OK(iris_free(iris, symmetric));
    CHECK(!shared || !iris_is_symmetric(iris, symmetric));
    return 0;
}

static const struct plan plans[] = {
    {.bytes = PIECE, .exportable = 1, .shared = 1},
    {.bytes = 2 * PIECE, .offset = 12345, .exportable = 1, .shared = 1},
    {.bytes = 3 * PIECE, .offset = PIECE + 256, .exportable = 1, .shared = 1},
    {.bytes = PIECE, .more = PIECE, .offset = 64, .exportable = 1, .shared = 1},
    {.bytes = 2 * PIECE, .shift = 4096, .exportable = 1, .shared = 0},
    {.bytes = PIECE, .exportable = 0, .shared = 0},
};

static int share_each(iris_t *iris, void *arg)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct plan plan = plans[i];

        plan.shared |= plan.exportable && iris_num_ranks(iris) == 1;
        CHECK_EQUAL(share(iris, &plan), 0);
    }
    return 0;
}

static TEST_WITH(memory_of_the_device_is_shared, use_vmem, use_what_was)
{
    need_gpu();
    harness_run(1, share_each, NULL);
    harness_run(2, share_each, NULL);
    harness_run(4, share_each, NULL);
}

/* Several at a time, given back in another order, until there is no room; what
 * the program does not give back goes with the context. */
static int share_many(iris_t *iris, void *arg)
{
    const struct plan plan = {.bytes = PIECE, .exportable = 1};
    struct own_memory own[10];
    void *symmetric[10];
    int rank = iris_rank(iris), num_shared = 0, shared;

    for (int i = 0; i < 10; i++) {
        int made = make_own(iris, &plan, &own[i]);

        if (made != 0) {
            return made - 1;
        }
        CHECK_EQUAL(fill(iris, own[i].part, 10 * i + rank, BYTES), 0);
        CHECK_OK(iris_as_symmetric(iris, own[i].part, BYTES, &symmetric[i],
                                   &shared));
        num_shared += shared;
        if (i % 3 == 0) {
            CHECK_EQUAL(
                seen_everywhere(iris, symmetric[i / 2], BYTES, 10 * (i / 2)),
                0);
        }
    }
    CHECK_EQUAL(num_shared, 8); /* as many as the heap has pieces */
    for (int i = 0; i < 10; i++) {
        int at = 7 * i % 10;

        CHECK_EQUAL(seen_everywhere(iris, symmetric[at], BYTES, 10 * at), 0);
        native_free(&own[at].native, own[at].ptr, own[at].bytes);
        if (i < 7) {
            CHECK_OK(iris_free(iris, symmetric[at]));
        }
    }
    return 0;
}

static TEST_WITH(many_are_shared_at_once, use_vmem, use_what_was)
{
    need_gpu();
    harness_run(1, share_many, NULL);
    harness_run(2, share_many, NULL);
}

static int copy_from_device(iris_t *iris, void *arg)
{
    struct plan plan = {.bytes = PIECE, .offset = 100, .exportable = 1};

    return share(iris, &plan);
}

static TEST_WITH(the_pool_allocator_copies, use_pool, use_what_was)
{
    need_gpu();
    harness_run(2, copy_from_device, NULL);
}

static int set_up(void **state)
{
    gpu = harness_has_gpu(); /* before this process uses one */
    setenv("IRIS_HEAP_SIZE", "16M", 1);
    return harness_setup(state);
}

TEST_GROUP_WITH(set_up, harness_teardown, rank, one_node, standard);
