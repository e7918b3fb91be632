/* SPDX-License-Identifier: MIT
 *
 * The CPU's peer for products: CBLAS, which is loaded when needed.
 */
#include "config.h"

#include "bench.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111 }; /* values from cblas.h */

typedef void (*sgemm_fn)(int order, int trans_a, int trans_b, int m, int n,
                         int k, float alpha, const float *a, int a_row,
                         const float *b, int b_row, float beta, float *out,
                         int out_row);

/* Shared by all ranks that are threads of this process, and set once. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;
static sgemm_fn sgemm;

/* Prefers the library that Iris's module has loaded: two libraries would each
 * start threads. */
static void load_cblas(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libcblas.so.3",
                                        "libblas.so.3"};
    const size_t count = sizeof names / sizeof names[0];

    for (size_t i = 0; i < 2 * count && sgemm == NULL; i++) {
        library = dlopen(names[i % count],
                         RTLD_NOW | RTLD_LOCAL | (i < count ? RTLD_NOLOAD : 0));
        if (library != NULL) {
            *(void **)&sgemm = dlsym(library, "cblas_sgemm");
        }
    }
}

static void multiply_matrices(const struct bench_shape *shape, const float *a,
                              const float *b, float *out)
{
    int m = (int)shape->m, n = (int)shape->n, k = (int)shape->k;

    sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, m, n, k, 1, a, k, b, n, 0, out, n);
}

bench_cblas_fn bench_peer_cblas(int num_ranks, const char **name_p)
{
    void (*set_threads)(int threads) = NULL;
    long each = sysconf(_SC_NPROCESSORS_ONLN) / num_ranks;

    pthread_once(&once, load_cblas);
    if (sgemm == NULL) {
        return NULL;
    }
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (set_threads != NULL) {
        set_threads(each < 1 ? 1 : (int)each);
    }
    *name_p = set_threads != NULL ? "OpenBLAS" : "CBLAS";
    return multiply_matrices;
}
