/* SPDX-License-Identifier: MIT
 *
 * Ranges for profilers: IRIS_TRACE=nvtx or IRIS_TRACE=roctx. An observer pushes
 * a range before each call of the host and pops it after the call, on the same
 * thread. The range has the call's name in a trace.
 *
 * roctx is a library, as NVTX was. Newer NVTX is a protocol without a library:
 * a profiler puts the path of its own library into NVTX_INJECTION64_PATH. The
 * library's entry asks for tables of pointers and stores its functions there;
 * nvtx3/nvtxDetail/nvtxTypes.h of the CUDA toolkit has the numbers.
 */
#include "config.h"

#include "trace/internal.h"

#include "base/base.h"
#include "context/context.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions of the profiler. push returns the depth, which is not used. */
struct range_calls {
    int (*push)(const char *name);
    int (*pop)(void);
};

struct ranges {
    struct iris_extension extension;
    struct iris_observer observer;
    iris_t *iris;
    struct range_calls calls;
};

/* ---- NVTX without a library ---- */

typedef void (*nvtx_function_t)(void);

enum {
    NVTX_CALLBACKS = 1, /* the table with get_table() */
    NVTX_VERSION_INFO = 3,
    NVTX_VERSION = 3,
    NVTX_CORE = 1, /* the module with the two functions below */
    NVTX_PUSH = 9,
    NVTX_POP = 11,
    NVTX_MODULES = 7,
    NVTX_CALLS = 16,
};

/* The profiler's functions, and the addresses of these pointers. */
static nvtx_function_t nvtx_calls[NVTX_MODULES][NVTX_CALLS];
static nvtx_function_t *nvtx_tables[NVTX_MODULES][NVTX_CALLS + 1];

static int get_table(int module, nvtx_function_t ***table_p,
                     unsigned *num_calls_p)
{
    if (module < 1 || module >= NVTX_MODULES) {
        return 0;
    }
    for (int i = 1; i < NVTX_CALLS; i++) {
        nvtx_tables[module][i] = &nvtx_calls[module][i];
    }
    if (table_p != NULL) {
        *table_p = nvtx_tables[module];
    }
    if (num_calls_p != NULL) {
        *num_calls_p = NVTX_CALLS;
    }
    return 1;
}

static void set_version(uint32_t version)
{
    (void)version;
}

static const void *get_export(uint32_t id)
{
    static const struct {
        size_t bytes;
        int (*get_table)(int, nvtx_function_t ***, unsigned *);
    } callbacks = {sizeof callbacks, get_table};
    static const struct {
        size_t bytes;
        uint32_t version, reserved;
        void (*set_version)(uint32_t);
    } version_info = {sizeof version_info, NVTX_VERSION, 0, set_version};

    return id == NVTX_CALLBACKS      ? (const void *)&callbacks
           : id == NVTX_VERSION_INFO ? &version_info
                                     : NULL;
}

/* Fills `calls` by the profiler's library. `why` gets the reason if it cannot;
 * the library stays loaded. */
static void inject_nvtx(const char *path, struct range_calls *calls,
                        char why[IRIS_MESSAGE_BYTES])
{
    int (*enter)(const void *(*)(uint32_t)) = NULL;
    void *library = iris_i_loader_library(path, 0);

    if (library != NULL) {
        *(void **)&enter = dlsym(library, "InitializeInjectionNvtx2");
    }
    if (enter == NULL) {
        const char *error = dlerror();

        snprintf(why, IRIS_MESSAGE_BYTES, "NVTX_INJECTION64_PATH=%.200s: %s",
                 path, error != NULL ? error : "it is no library for NVTX");
    } else if (enter(get_export) == 0 ||
               nvtx_calls[NVTX_CORE][NVTX_PUSH] == NULL ||
               nvtx_calls[NVTX_CORE][NVTX_POP] == NULL) {
        snprintf(why, IRIS_MESSAGE_BYTES,
                 "NVTX_INJECTION64_PATH=%.200s: the library takes no ranges",
                 path);
    } else {
        memcpy(&calls->push, &nvtx_calls[NVTX_CORE][NVTX_PUSH],
               sizeof calls->push);
        memcpy(&calls->pop, &nvtx_calls[NVTX_CORE][NVTX_POP],
               sizeof calls->pop);
    }
}

/* ---- Libraries with functions for ranges ---- */

/* A profiler may have loaded one of several already. */
static void load_ranges(const char *const names[], const char *const symbols[2],
                        struct range_calls *calls)
{
    for (int only_loaded = 1; only_loaded >= 0; only_loaded--) {
        for (int i = 0; names[i] != NULL && calls->push == NULL; i++) {
            void *library = iris_i_loader_library(names[i], only_loaded);

            if (library != NULL) {
                *(void **)&calls->push = dlsym(library, symbols[0]);
                *(void **)&calls->pop = dlsym(library, symbols[1]);
            }
            if (calls->pop == NULL) {
                calls->push = NULL;
            }
        }
    }
}

static void load_nvtx(struct range_calls *calls, char why[IRIS_MESSAGE_BYTES])
{
    static const char *const names[] = {"libnvToolsExt.so.1", NULL};
    static const char *const symbols[] = {"nvtxRangePushA", "nvtxRangePop"};
    const char *path = getenv("NVTX_INJECTION64_PATH");

    if (path != NULL && path[0] != '\0') {
        inject_nvtx(path, calls, why);
        return;
    }
    load_ranges(names, symbols, calls);
    snprintf(why, IRIS_MESSAGE_BYTES,
             "no profiler has set NVTX_INJECTION64_PATH, and there is no "
             "libnvToolsExt.so.1; run the program under nsys profile");
}

static void load_roctx(struct range_calls *calls, char why[IRIS_MESSAGE_BYTES])
{
    static const char *const names[] = {
        "librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so",
        "libroctx64.so.4", "libroctx64.so", NULL};
    static const char *const symbols[] = {"roctxRangePushA", "roctxRangePop"};

    load_ranges(names, symbols, calls);
    snprintf(why, IRIS_MESSAGE_BYTES,
             "the loader finds neither librocprofiler-sdk-roctx.so nor "
             "libroctx64.so; add ROCm's lib to LD_LIBRARY_PATH");
}

/* The functions for a value of IRIS_TRACE, which are loaded once. */
static struct range_calls get_calls(int is_nvtx, char why[IRIS_MESSAGE_BYTES])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct range_calls loaded[2];
    struct range_calls calls;

    pthread_mutex_lock(&lock);
    if (loaded[is_nvtx].push == NULL) {
        (is_nvtx ? load_nvtx : load_roctx)(&loaded[is_nvtx], why);
    }
    calls = loaded[is_nvtx];
    pthread_mutex_unlock(&lock);
    return calls;
}

/* ---- A context's ranges ---- */

static void mark_call(void *self, const struct iris_host_event *event)
{
    const struct ranges *ranges = self;
    char name[IRIS_TRACE_CALL_BYTES];

    if (event->op == IRIS_HOST_KERNEL || iris_i_trace_is_command(event)) {
        return; /* a stream's thread, not a call */
    }
    if (event->after) {
        ranges->calls.pop();
        return;
    }
    iris_i_trace_call_name(ranges->iris, event, event->kernel, name);
    ranges->calls.push(name);
}

static void close_ranges(struct iris_extension *extension)
{
    struct ranges *ranges = (struct ranges *)extension;

    iris_i_hooks_remove(iris_i_hooks(ranges->iris), &ranges->observer);
    free(ranges);
}

void iris_i_trace_mark_calls(iris_t *iris)
{
    const char *value = iris_i_settings(iris)->trace.text;
    char why[IRIS_MESSAGE_BYTES] = "no memory";
    struct ranges *ranges = calloc(1, sizeof *ranges);

    if (ranges != NULL) {
        ranges->calls = get_calls(strcmp(value, "nvtx") == 0, why);
    }
    if (ranges == NULL || ranges->calls.push == NULL) {
        iris_i_warning(iris_i_log(iris),
                       "IRIS_TRACE=%s: a profiler sees no ranges: %s", value,
                       why);
        free(ranges);
        return;
    }
    ranges->extension.close = close_ranges;
    ranges->observer.host = mark_call;
    ranges->observer.self = ranges;
    ranges->iris = iris;
    if (iris_i_hooks_add(iris_i_hooks(iris), &ranges->observer) != IRIS_OK) {
        iris_i_warning(iris_i_log(iris), "IRIS_TRACE=%s: %s", value,
                       iris_last_error());
        free(ranges);
        return;
    }
    iris_i_extend(iris, IRIS_EXTENSION_RANGES, &ranges->extension);
}
