/* SPDX-License-Identifier: MIT
 *
 * Chooses the library that multiplies matrices for a context, and loads its
 * module.
 */
#include "config.h"

#include "ops/internal.h"

#include "base/base.h"
#include "base/fp_env.h"
#include "context/context.h"
#include "queue/queue.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* A context's library. */
struct choice {
    struct iris_extension extension;
    const struct iris_blas *blas; /* NULL: the core's own kernels */
    void *state;
};

/* The libraries, one for each kind of device. The library's module sets `blas`
 * once. */
static struct entry {
    const char *name;
    int built;
    enum iris_memory_kind memory; /* kind of its devices */
    const struct iris_blas *blas;
} entries[] = {
    {"cblas", HAVE_CBLAS, IRIS_MEMORY_HOST, NULL},
    {"cublaslt", HAVE_CUBLASLT, IRIS_MEMORY_CUDA, NULL},
    {"hipblaslt", HAVE_HIPBLASLT, IRIS_MEMORY_ROCM, NULL},
};
#define NUM_ENTRIES (sizeof entries / sizeof entries[0])

/* Guards the members of the entries that change. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Modules ---- */

/* Bytes that OpenBLAS takes for each thread: for its own threads when it is
 * loaded, and for a caller at its first product. Without this memory it tries
 * forever. */
#define BLAS_THREAD_BYTES ((size_t)160 << 20)

/* Whether the limit on address space leaves the library enough: for its
 * threads, one on each processor, and for a caller. */
static int has_room(char *why, size_t bytes)
{
    long threads = sysconf(_SC_NPROCESSORS_ONLN);
    size_t need = BLAS_THREAD_BYTES * (size_t)(threads < 1 ? 2 : threads + 1);
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    void *trial;

    getrlimit(RLIMIT_AS, &limit);
    if (limit.rlim_cur == RLIM_INFINITY) {
        return 1;
    }
    trial = mmap(NULL, need, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (trial != MAP_FAILED) {
        munmap(trial, need);
        return 1;
    }
    snprintf(why, bytes,
             "the limit on address space (ulimit -v), %llu bytes, does not "
             "leave the %zu bytes that it takes; raise it",
             (unsigned long long)limit.rlim_cur, need);
    return 0;
}

/* The result of the module's entry function, or NULL with the reason in
 * `why`. */
static const struct iris_blas *load(const char *name, const char *folder,
                                    char *why, size_t bytes)
{
    const struct iris_blas *blas;
    iris_blas_entry_t enter;
    struct iris_loader loader;
    /* The library's threads inherit the environment of this one. */
    uint64_t fp = iris_i_fp_enter();

    *(void **)&enter =
        iris_i_loader_open(&loader, folder, name, IRIS_BLAS_SYMBOL);
    iris_i_fp_leave(fp);
    if (loader.handle == NULL) {
        snprintf(why, bytes, "%s", loader.why);
        return NULL;
    }
    blas = enter == NULL ? NULL : enter(IRIS_BLAS_VERSION);
    if (blas == NULL) {
        snprintf(why, bytes, "%.400s belongs to another build of Iris",
                 loader.path);
        iris_i_loader_close(&loader);
    }
    return blas;
}

static const struct iris_blas *blas_of(const iris_t *iris, struct entry *entry,
                                       char *why, size_t bytes)
{
    const struct iris_blas *blas;

    if (!entry->built) {
        snprintf(why, bytes, "this build has no module of it");
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (entry->blas == NULL &&
        (entry->memory != IRIS_MEMORY_HOST || has_room(why, bytes))) {
        entry->blas = load(entry->name, iris_i_settings(iris)->module_dir.text,
                           why, bytes);
    }
    blas = entry->blas;
    pthread_mutex_unlock(&lock);
    return blas;
}

/* ---- The choice ---- */

/* Ranks of this machine divide its processors, with the same number of threads
 * each. */
static int threads_of(const iris_t *iris)
{
    long each = sysconf(_SC_NPROCESSORS_ONLN) / iris_i_num_ranks(iris);

    return each < 1 ? 1 : (int)each;
}

static void say_missing(const iris_t *iris, const char *name, const char *why)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&said)) {
        iris_i_info(iris_i_log(iris),
                    "products of matrices take the library's own loop, which "
                    "is slow: no %s: %s",
                    name, why);
    }
}

static iris_status_t refuse(const iris_t *iris, const char *name,
                            const char *why)
{
    return iris_i_fail(
        iris_i_log(iris), IRIS_ERR_BACKEND,
        "IRIS_BLAS=%s cannot be used: %s. Install the missing file "
        "(IRIS_MODULE_DIR names the folder of modules), or unset IRIS_BLAS",
        name, why);
}

/* The arguments of a library's open(), and the thread that calls it. */
struct opening {
    struct choice *choice;
    const struct iris_blas *blas;
    int threads;
    char why[IRIS_BLAS_WHY_BYTES];
};

static iris_status_t open_library(void *native, void *what)
{
    struct opening *opening = what;

    (void)native;
    return opening->blas->open(opening->threads, &opening->choice->state,
                               opening->why);
}

static iris_status_t open_on_gpu(iris_t *iris, struct opening *opening)
{
    struct iris_stream *stream;
    iris_status_t status =
        iris_i_stream_resolve(iris_i_queue(iris), NULL, &stream);

    status = status ? status : iris_i_queue_call(stream, open_library, opening);
    if (status != IRIS_OK && opening->why[0] == '\0') {
        snprintf(opening->why, sizeof opening->why, "%.500s",
                 iris_last_error());
    }
    return status;
}

/* Tries to open an entry's library. IRIS_OK: the library is chosen. */
static iris_status_t try_entry(iris_t *iris, struct entry *entry,
                               struct choice *choice, char *why, size_t bytes)
{
    int is_gpu = iris_i_device(iris)->memory != IRIS_MEMORY_HOST;
    struct opening opening = {.choice = choice, .threads = threads_of(iris)};
    char text[IRIS_BLAS_WHY_BYTES];
    iris_status_t status;

    if ((entry->memory != IRIS_MEMORY_HOST) != is_gpu) {
        snprintf(why, bytes, "it is not for this rank's device, %s",
                 iris_i_device(iris)->name);
        return IRIS_ERR_BACKEND;
    }
    opening.blas = blas_of(iris, entry, why, bytes);
    if (opening.blas == NULL) {
        return IRIS_ERR_BACKEND;
    }
    status =
        is_gpu ? open_on_gpu(iris, &opening) : open_library(NULL, &opening);
    if (status != IRIS_OK) {
        snprintf(why, bytes, "%s", opening.why);
        return status;
    }
    choice->blas = opening.blas;
    choice->blas->describe(choice->state, text);
    iris_i_debug(iris_i_log(iris), "products of matrices by %s: %s",
                 choice->blas->name, text);
    return IRIS_OK;
}

/* Whether other ranks of this process use the same GPU. Loading a library's
 * kernel waits there for all running kernels, and one of these may wait for
 * this rank (docs/known-limits.md). */
static int shares_gpu(const iris_t *iris)
{
    if (iris->placement.ranks_on_device < 2) {
        return 0;
    }
    for (int rank = 0; rank < iris_i_num_ranks(iris); rank++) {
        if (rank != iris_i_rank(iris) &&
            !iris_i_control_is_remote(iris->control, rank)) {
            return 1;
        }
    }
    return 0;
}

/* The device's library, if it works. */
static void choose_any(iris_t *iris, struct choice *choice)
{
    enum iris_memory_kind memory = iris_i_device(iris)->memory;
    char why[IRIS_BLAS_WHY_BYTES];

    if (memory != IRIS_MEMORY_HOST && shares_gpu(iris)) {
        iris_i_debug(iris_i_log(iris),
                     "products of matrices take the library's own loop: other "
                     "rank threads use this GPU, and a vendor's library could "
                     "hang there; IRIS_BLAS=<name> uses it all the same");
        return;
    }
    for (size_t i = 0; i < NUM_ENTRIES; i++) {
        if (entries[i].memory == memory &&
            try_entry(iris, &entries[i], choice, why, sizeof why) != IRIS_OK) {
            iris_i_debug(iris_i_log(iris), "no products of matrices by %s: %s",
                         entries[i].name, why);
            say_missing(iris, entries[i].name, why);
        }
    }
}

/* Sets the choice. While bounds are checked, no library is used: accesses by a
 * library's thread beyond an allocation would look like the program's. */
static iris_status_t choose(iris_t *iris, struct choice *choice)
{
    const char *wanted = iris_i_settings(iris)->blas.text;
    char why[IRIS_BLAS_WHY_BYTES] = "";

    if (iris->bounds != NULL || strcmp(wanted, "none") == 0) {
        return IRIS_OK;
    }
    if (strcmp(wanted, "auto") == 0) {
        choose_any(iris, choice);
        return IRIS_OK;
    }
    for (size_t i = 0; i < NUM_ENTRIES; i++) {
        if (strcmp(wanted, entries[i].name) == 0) {
            return try_entry(iris, &entries[i], choice, why, sizeof why) ==
                           IRIS_OK
                       ? IRIS_OK
                       : refuse(iris, wanted, why);
        }
    }
    return IRIS_OK;
}

static void close_choice(struct iris_extension *extension)
{
    struct choice *choice = (struct choice *)extension;

    if (choice->blas != NULL) {
        choice->blas->close(choice->state);
    }
    free(choice);
}

iris_status_t iris_i_ops_blas(iris_t *iris, const struct iris_blas **blas_p,
                              void **state_p)
{
    struct choice *choice =
        (struct choice *)iris_i_extension(iris, IRIS_EXTENSION_BLAS);
    iris_status_t status = IRIS_OK;

    if (choice == NULL) {
        choice = calloc(1, sizeof *choice);
        if (choice == NULL) {
            return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                               "no memory for a product's library");
        }
        choice->extension.close = close_choice;
        status = choose(iris, choice);
        if (status != IRIS_OK) {
            free(choice);
            return status;
        }
        iris_i_extend(iris, IRIS_EXTENSION_BLAS, &choice->extension);
    }
    *blas_p = choice->blas;
    *state_p = choice->state;
    return IRIS_OK;
}
