/* SPDX-License-Identifier: MIT
 *
 * What /proc/PID/stat says of a process.
 */
#include "config.h"

#include "base/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The name, in parentheses, may have any character but ends at the last one.
 */
int iris_i_process_read(int pid, struct iris_process *process_p)
{
    char path[64], text[1024];
    const char *rest;
    size_t length;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    rest = strrchr(text, ')');
    return rest != NULL &&
           sscanf(rest,
                  ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                  "%*s %*s %*s %*s %" SCNu64,
                  &process_p->state, &process_p->parent,
                  &process_p->start_ticks) == 3;
}
