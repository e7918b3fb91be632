/* SPDX-License-Identifier: MIT
 *
 * iris probe before there are ranks: how it finds its script, and how it lets
 * another library begin to use the GPUs.
 */
#include "config.h"

#include "iris.h"

#include "base/base.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The script of a build is beside the program. */
int tool_find_script(char *program, char *script)
{
    ssize_t length = readlink("/proc/self/exe", program, PATH_MAX - 1);
    char *name;

    if (length < 0) {
        perror("iris probe: /proc/self/exe");
        return 0;
    }
    program[length] = '\0';
    name = strrchr(program, '/');
    if (snprintf(script, PATH_MAX, "%.*s/tools/probe-all",
                 (int)(name - program), program) >= PATH_MAX ||
        access(script, X_OK) != 0) {
        snprintf(script, PATH_MAX, "%s/probe-all", IRIS_DATA_DIR);
    }
    return 1;
}

/* Its communicators stay, as those of a program would. */
int tool_begin_peer(const char *path, int num_gpus)
{
    int (*init_all)(void **comms, int count, const int *devices);
    void *library, *symbol = NULL;
    void **comms;
    int ret;

    if (path == NULL) {
        return 1;
    }
    library = iris_i_loader_library(path, 0);
    if (library != NULL) {
        symbol = dlsym(library, "ncclCommInitAll");
    }
    comms = calloc((size_t)num_gpus, sizeof *comms);
    if (symbol == NULL || comms == NULL) {
        fprintf(stderr, "iris probe: --after: %s: %s\n", path,
                library == NULL  ? "no such library"
                : symbol == NULL ? "no ncclCommInitAll()"
                                 : "no memory");
        free(comms);
        return 0;
    }
    memcpy(&init_all, &symbol, sizeof symbol);
    ret = init_all(comms, num_gpus, NULL);
    free(comms);
    if (ret != 0) {
        fprintf(stderr, "iris probe: --after: %s: error %d for %d GPUs\n", path,
                ret, num_gpus);
    }
    return ret == 0;
}
