/* SPDX-License-Identifier: MIT
 *
 * Which library multiplies matrices for a context, and its module.
 */
#include "config.h"

#include "ops/blas.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/loader.h"
#include "context/context_type.h"

/* A context's library. */
struct choice {
    struct iris_extension extension;
    const struct iris_blas *blas; /* NULL: the core's own kernels */
    void *state;
};

/* Libraries that this build knows. `blas` is set once, by its module. */
static struct entry {
    const char *name;
    int built;
    int on_gpu;
    const struct iris_blas *blas;
} entries[] = {
    {"cblas", HAVE_CBLAS, 0, NULL},
    {"cublas", 0, 1, NULL}, /* for which there is no module yet */
};
#define NUM_ENTRIES (sizeof entries / sizeof entries[0])

/* Guards what modules change in the entries. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Modules ---- */

/* OpenBLAS takes so much for each thread, its own ones when it is loaded and a
 * caller at its first product, and tries for ever where it gets none. */
#define BLAS_THREAD_BYTES ((size_t)160 << 20)

/* Whether the limit on address space leaves the library enough: its threads, as
 * many as there are processors, and a caller. */
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

/* What the module's entry gives, or NULL with why. */
static const struct iris_blas *load(const char *name, const char *folder,
                                    char *why, size_t bytes)
{
    const struct iris_blas *blas;
    iris_blas_entry_t enter;
    struct iris_loader loader;

    *(void **)&enter =
        iris_i_loader_open(&loader, folder, name, IRIS_BLAS_SYMBOL);
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
    if (entry->blas == NULL && (entry->on_gpu || has_room(why, bytes))) {
        entry->blas = load(entry->name, iris_i_settings(iris)->module_dir.text,
                           why, bytes);
    }
    blas = entry->blas;
    pthread_mutex_unlock(&lock);
    return blas;
}

/* ---- The choice ---- */

static int is_gpu(const iris_t *iris)
{
    return iris_i_device(iris)->memory != IRIS_MEMORY_HOST;
}

/* The one that is named, else the device's. */
static struct entry *find(const iris_t *iris, const char *name)
{
    for (size_t i = 0; i < NUM_ENTRIES; i++) {
        if (strcmp(name, "auto") == 0 ? entries[i].on_gpu == is_gpu(iris)
                                      : strcmp(name, entries[i].name) == 0) {
            return &entries[i];
        }
    }
    return NULL;
}

/* Ranks of this machine share its processors, each with as many threads. */
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
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_BACKEND,
                       "IRIS_BLAS=%s cannot be used: %s. Install what is "
                       "missing (IRIS_MODULE_DIR says where modules are), or "
                       "leave IRIS_BLAS out",
                       name, why);
}

/* Fills in the choice. A library's thread that leaves what is allocated could
 * not be told from the program's, so with bounds checked there is none. */
static iris_status_t choose(iris_t *iris, struct choice *choice)
{
    const char *wanted = iris_i_settings(iris)->blas.text;
    struct entry *entry = find(iris, wanted);
    char why[512] = "";
    iris_status_t status = IRIS_ERR_BACKEND;
    const struct iris_blas *blas = NULL;

    if (entry == NULL || iris->bounds != NULL) {
        return IRIS_OK;
    }
    if (entry->on_gpu != is_gpu(iris)) {
        snprintf(why, sizeof why, "it is not for this rank's device, %s",
                 iris_i_device(iris)->name);
    } else {
        blas = blas_of(iris, entry, why, sizeof why);
    }
    if (blas != NULL) {
        status = blas->open(threads_of(iris), &choice->state, why);
    }
    if (status == IRIS_OK) {
        choice->blas = blas;
        iris_i_debug(iris_i_log(iris), "products of matrices by %s: %s",
                     blas->name, blas->describe());
        return IRIS_OK;
    }
    if (strcmp(wanted, "auto") != 0) {
        return refuse(iris, wanted, why);
    }
    say_missing(iris, entry->name, why);
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
