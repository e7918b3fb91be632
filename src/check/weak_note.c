/* SPDX-License-Identifier: MIT
 *
 * A line has fields separated by tabs; tools/replay_file.c reads them.
 */
#include "config.h"

#include "check/internal.h"

#include <string.h>

/* "inbox"+8: the name of the allocation and the offset in it. Without a name,
 * the allocation's offset on the heap. */
static void describe_place(const struct iris_weak *weak,
                           const struct iris_weak_range *range, char *text,
                           size_t bytes)
{
    const struct iris_heap_names *names = &weak->params.heap->names;
    char name[IRIS_NAME_BYTES + 4] = "";
    size_t start = 0, size;

    if (iris_i_heap_find(names, range->offset, &start, &size)) {
        (void)iris_i_heap_describe(names, start, name);
    }
    if (name[0] != '\0') {
        snprintf(text, bytes, "%s+%zu", name + 1, range->offset - start);
    } else {
        snprintf(text, bytes, "heap+%zu", range->offset);
    }
}

static void print_value(FILE *record, const char *word, bool is_there,
                        uint64_t value)
{
    if (is_there) {
        fprintf(record, "\t%s %llu", word, (unsigned long long)value);
    } else {
        fprintf(record, "\t%s -", word);
    }
}

void iris_i_weak_note(const struct iris_weak *weak,
                      const struct iris_cpu_event *event,
                      const struct iris_weak_deed *deed)
{
    static const struct iris_weak_range nowhere = {.rank = -1};
    const struct iris_weak_range *range =
        deed->range == NULL ? &nowhere : deed->range;
    FILE *record = iris_i_weak_choices(weak->machine->schedule)->record;
    char place[IRIS_NAME_BYTES + 32] = "-", text[128];
    struct iris_race_site site = {.op = event->op,
                                  .host_op = -1,
                                  .sem = event->sem,
                                  .scope = event->scope,
                                  .atomic = event->atomic != 0};

    if (record == NULL) {
        return;
    }
    iris_i_race_find_file(event->site, 0, &site);
    iris_i_race_deed(&site, text, sizeof text);
    if (deed->range != NULL) {
        describe_place(weak, range, place, sizeof place);
    }
    fprintf(record, "did\t%d\t%u\t%s\t%d\t%zu\t%zu", event->rank,
            event->workgroup, event->kernel, range->rank, range->offset,
            range->bytes);
    print_value(record, "read", deed->reads, deed->seen);
    print_value(record, "wrote", deed->writes, deed->written);
    fprintf(record, "\told %u\t%s\t%s\t0x%llx\t%s\n", deed->behind, text, place,
            (unsigned long long)site.offsets[0], site.file);
}
