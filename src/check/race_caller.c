/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "config.h"

#include "check/check.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

/* The file that contains the code; NULL: unknown. */
static const struct link_map *file_of(const void *address)
{
    struct link_map *map = NULL;
    Dl_info info;

    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ? NULL
                                                                        : map;
}

void iris_i_race_caller(struct iris_race_caller *caller_p)
{
    void *frames[64];
    int count = backtrace(frames, (int)(sizeof frames / sizeof *frames));
    const struct link_map *own =
        count == 0 ? NULL : file_of(frames[0]); /* this function */
    bool is_shared =
        own != NULL && own->l_name != NULL && own->l_name[0] != '\0';
    int i = 0;

    memset(caller_p, 0, sizeof *caller_p);
    while (is_shared && i < count && file_of(frames[i]) == own) {
        i++;
    }
    if (is_shared && i < count) {
        caller_p->frames[0] = frames[i];
    }
    for (; !is_shared && i < count && i < IRIS_RACE_FRAMES &&
           file_of(frames[i]) == own;
         i++) {
        caller_p->frames[i] = frames[i];
    }
}
