/* SPDX-License-Identifier: MIT
 *
 * Loading modules, which are built and installed with the library.
 */
#include "config.h"

#include "base/base.h"

#include <dlfcn.h>
#include <stdio.h>

void *iris_i_loader_open(struct iris_loader *loader, const char *folder,
                         const char *name, const char *symbol)
{
    loader->why[0] = '\0';
    snprintf(loader->path, sizeof loader->path, "%s/iris_%s.so",
             folder != NULL && folder[0] != '\0' ? folder : IRIS_MODULE_DIR,
             name);
    loader->handle = dlopen(loader->path, RTLD_NOW | RTLD_LOCAL);
    if (loader->handle == NULL) {
        snprintf(loader->why, sizeof loader->why, "%s", dlerror());
        return NULL;
    }
    return dlsym(loader->handle, symbol);
}

void iris_i_loader_close(struct iris_loader *loader)
{
    if (loader->handle != NULL) {
        dlclose(loader->handle);
        loader->handle = NULL;
    }
}

void *iris_i_loader_library(const char *file, int only_loaded)
{
    return dlopen(file,
                  RTLD_LAZY | RTLD_LOCAL | (only_loaded ? RTLD_NOLOAD : 0));
}
