/* SPDX-License-Identifier: MIT
 *
 * A small program has few different outputs, so a list is enough.
 */
#include "config.h"

#include "replay_outputs.h"

#include "replay_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void replay_outputs_add(struct replay_outputs *outputs, const char *text)
{
    struct replay_output *output;
    size_t i = 0, bytes = strlen(text) + 1;

    while (i < outputs->count && strcmp(outputs->outputs[i].text, text) != 0) {
        i++;
    }
    if (i == outputs->count) {
        outputs->outputs =
            replay_grow(outputs->outputs, i, sizeof *outputs->outputs);
        output = &outputs->outputs[outputs->count++];
        *output = (struct replay_output){.text = replay_alloc(NULL, bytes)};
        memcpy(output->text, text, bytes);
    }
    outputs->outputs[i].count++;
}

void replay_outputs_end(struct replay_outputs *outputs, bool prints)
{
    for (size_t i = 0; i < outputs->count; i++) {
        const struct replay_output *output = &outputs->outputs[i];
        size_t length = strlen(output->text);

        if (prints) {
            printf("%lu executions: %s%s", output->count, output->text,
                   length == 0 || output->text[length - 1] != '\n' ? "\n" : "");
        }
        free(output->text);
    }
    free(outputs->outputs);
    *outputs = (struct replay_outputs){0};
}
