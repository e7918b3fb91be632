/* SPDX-License-Identifier: MIT
 *
 * Loading modules, which are built and installed with the library.
 */
#ifndef IRIS_SRC_BASE_LOADER_H
#define IRIS_SRC_BASE_LOADER_H

/* A module that was looked for. `path` and `why` are for messages. */
struct iris_loader {
    void *handle; /* NULL: not loaded */
    char path[1024];
    char why[512]; /* it is not loaded */
};

/* Loads iris_<name>.so from `folder`, or, where that is NULL or empty, from
 * where make install put modules. Returns the address of its one symbol; NULL:
 * it is not loaded, or has no such symbol, as one of another build. What both
 * sides hand each other is checked by the caller. */
void *iris_i_loader_open(struct iris_loader *loader, const char *folder,
                         const char *name, const char *symbol);

/* Unloads a module that is not used; does nothing where none is loaded. */
void iris_i_loader_close(struct iris_loader *loader);

/* Loads another's library by its file or name; with `only_loaded` one that the
 * process has loaded already. NULL: it is not there. */
void *iris_i_loader_library(const char *file, int only_loaded);

#endif /* IRIS_SRC_BASE_LOADER_H */
