/* SPDX-License-Identifier: MIT
 *
 * Loading modules, which are built and installed with the library.
 */
#ifndef IRIS_SRC_BASE_LOADER_H
#define IRIS_SRC_BASE_LOADER_H

/* The result of looking for a module. `path` and `why` are for messages. */
struct iris_loader {
    void *handle; /* NULL: not loaded */
    char path[1024];
    char why[512]; /* the reason if it is not loaded */
};

/* Loads iris_<name>.so from `folder`, or from the installation's folder of
 * modules if `folder` is NULL or empty. Returns the address of its only symbol.
 * NULL: it is not loaded, or lacks the symbol because it belongs to another
 * build. The caller checks that both sides use the same interface. */
void *iris_i_loader_open(struct iris_loader *loader, const char *folder,
                         const char *name, const char *symbol);

/* Unloads an unused module; does nothing if none is loaded. */
void iris_i_loader_close(struct iris_loader *loader);

/* Loads a third party's library by its file or name. With `only_loaded`, only
 * finds one that the process has already loaded. NULL: not found. */
void *iris_i_loader_library(const char *file, int only_loaded);

#endif /* IRIS_SRC_BASE_LOADER_H */
