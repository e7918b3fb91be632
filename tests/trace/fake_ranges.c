/* SPDX-License-Identifier: MIT
 *
 * Profilers' libraries for ranges.sh, which writes ranges to the file of
 * FAKE_RANGES: "THREAD push NAME" and "THREAD pop". PUSH and POP are the names
 * of the functions. With INJECTED it is a library of NVTX's protocol instead.
 * FAKE_REFUSES=1: it takes no ranges.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef INJECTED
#define PUSH push_range
#define POP pop_range
#define SHOWN static
#else
#define SHOWN
int PUSH(const char *name);
int POP(void);
#endif

static void write_line(const char *what, const char *name)
{
    int fd = open(getenv("FAKE_RANGES"), O_WRONLY | O_APPEND | O_CREAT, 0666);
    char line[256];
    int length =
        snprintf(line, sizeof line, "%d %s%s\n", (int)gettid(), what, name);

    if (fd < 0 || write(fd, line, (size_t)length) != length) {
        abort();
    }
    close(fd);
}

SHOWN int PUSH(const char *name)
{
    write_line("push ", name);
    return 0;
}

SHOWN int POP(void)
{
    write_line("pop", "");
    return 0;
}

#ifdef INJECTED
struct callbacks {
    size_t bytes;
    int (*get_table)(int module, void ****table_p, unsigned *num_calls_p);
};
struct version {
    size_t bytes;
    uint32_t version;
    uint32_t reserved;
    void (*set)(uint32_t version);
};

int InitializeInjectionNvtx2(const void *(*get_export)(uint32_t id));
int InitializeInjectionNvtx2(const void *(*get_export)(uint32_t id))
{
    const struct callbacks *callbacks = get_export(1);
    const struct version *version = get_export(3);
    void ***table = NULL;
    unsigned num_calls = 0;

    if (getenv("FAKE_REFUSES") != NULL) {
        return 0;
    }
    if (callbacks->bytes < sizeof *callbacks ||
        version->bytes < sizeof *version || version->version != 3 ||
        get_export(2) != NULL || callbacks->get_table(7, NULL, NULL) != 0) {
        abort();
    }
    version->set(3);
    for (int module = 1; module <= 6; module++) {
        if (!callbacks->get_table(module, &table, &num_calls)) {
            abort();
        }
    }
    if (!callbacks->get_table(1, &table, &num_calls) || num_calls <= 11 ||
        table[0] != NULL) {
        abort();
    }
    *table[9] = (void *)PUSH;
    *table[11] = (void *)POP;
    return 1;
}
#endif
