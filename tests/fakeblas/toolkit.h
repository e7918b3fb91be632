/* SPDX-License-Identifier: MIT
 *
 * What tests of GPU libraries' modules share: the fakes, and a toolkit's folder
 * that holds them.
 */
#ifndef IRIS_TESTS_FAKEBLAS_TOOLKIT_H
#define IRIS_TESTS_FAKEBLAS_TOOLKIT_H

#include "support/hip_job.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "context/context.h"
#include "fakeblas/fakeblas.h"

static const struct library {
    const char *name;
    const char *file;
    const char *create_fails;
    const char *create_error;
    const char *product_fails;
    const char *product_error;
} toolkit_libraries[] = {
    {"cublaslt", "libcublasLt.so", "Create:1",
     "cublasLtCreate returned CUBLAS_STATUS_NOT_INITIALIZED (1)", "Matmul:13",
     "a product by cublaslt: cublasLtMatmul returned "
     "CUBLAS_STATUS_EXECUTION_FAILED (13)"},
    {"hipblaslt", "libhipblaslt.so", "Create:1",
     "hipblasLtCreate returned HIPBLAS_STATUS_NOT_INITIALIZED (1)", "Matmul:5",
     "a product by hipblaslt: hipblasLtMatmul returned "
     "HIPBLAS_STATUS_EXECUTION_FAILED (5)"},
};
#define NUM_TOOLKIT_LIBRARIES \
    (sizeof toolkit_libraries / sizeof toolkit_libraries[0])

static inline const struct fakeblas_seen *
toolkit_seen(const struct library *library)
{
    char path[1024];
    void *handle;
    fakeblas_seen_t get;

    snprintf(path, sizeof path, "%s/%s", FAKEBLAS_FOLDER, library->file);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    *(void **)&get = dlsym(handle, "fakeblas_seen");
    assert_non_null(get);
    return get();
}

/* A toolkit's folder, of which lib has the fakes. */
static inline int toolkit_setup(void **state)
{
    char lib[1024];

    if (hip_setup(state) != 0) {
        return -1;
    }
    snprintf(lib, sizeof lib, "%s/lib", harness_folder());
    return symlink(FAKEBLAS_FOLDER, lib);
}

static inline int toolkit_teardown(void **state)
{
    char lib[1024];

    snprintf(lib, sizeof lib, "%s/lib", harness_folder());
    unlink(lib);
    return harness_teardown(state);
}

/* The fake GPUs' memory is the host's, which GPU libraries are not for. */
static inline void toolkit_be_a_gpu(iris_t *iris)
{
    struct iris_device_info *info =
        (struct iris_device_info *)(uintptr_t)iris_i_device(iris);

    info->memory = IRIS_MEMORY_ROCM;
}

static inline void toolkit_use(const char *name, const char *folder)
{
    setenv("IRIS_BLAS", name, 1);
    setenv("CUDA_HOME", folder, 1);
    setenv("ROCM_PATH", folder, 1);
}

#endif /* IRIS_TESTS_FAKEBLAS_TOOLKIT_H */
