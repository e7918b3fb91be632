/* SPDX-License-Identifier: MIT
 *
 * Variables that look like settings and are none: who warns of them, how often,
 * and which name is offered instead.
 */
#include "config.h"

#include "support/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int nothing(iris_t *iris, void *arg)
{
    return 0;
}

/* What a process of its own says on stderr that has two jobs of three ranks. */
static const char *run(const char *way, struct harness_capture *capture)
{
    struct iris_config config;
    pid_t pid;
    int how = -1;

    iris_config_init(&config);
    config.spawn = way;
    fflush(NULL);
    harness_capture(capture);
    pid = fork();
    if (pid == 0) {
        _exit(iris_spawn(&config, 3, nothing, NULL) != IRIS_OK ||
              (strcmp(way, "threads") == 0 &&
               iris_spawn(&config, 3, nothing, NULL) != IRIS_OK));
    }
    waitpid(pid, &how, 0);
    harness_captured(capture);
    assert_int_equal(how, 0);
    return capture->text;
}

static int count(const char *text, const char *what)
{
    int found = 0;

    while ((text = strstr(text, what)) != NULL) {
        found++;
        text += strlen(what);
    }
    return found;
}

static void expect(const char *name, const char *line)
{
    static const char *const ways[] = {"threads", "processes"};

    for (int way = 0; way < 2; way++) {
        struct harness_capture capture;
        const char *text;

        setenv(name, "1", 1);
        text = run(ways[way], &capture);
        unsetenv(name);
        if (count(text, "is unknown") != (line[0] != '\0') ||
            !strstr(text, line)) {
            print_error("%s: %s\n", name, text);
            fail();
        }
        free(capture.text);
    }
}

static TEST(a_misspelt_variable_is_warned_of_once_by_rank_0)
{
    expect("IRIS_HEAPSIZE",
           "[Iris] [0/3] IRIS_HEAPSIZE is unknown; did you mean "
           "IRIS_HEAP_SIZE?\n");
}

static TEST(the_nearest_name_is_offered_or_none)
{
    char longest[400] = "IRIS_", cut[80];

    expect("IRIS_TIMEOUT", "did you mean IRIS_TIMEOUT_MS?");
    expect("IRIS_NUMRANKS", "did you mean IRIS_NUM_RANKS?");
    expect("IRIS_heap_size", "did you mean IRIS_HEAP_SIZE?");
    expect("IRIS_", "IRIS_ is unknown; iris info lists all settings\n");
    expect("IRIS_PUPIL_COLOUR", "IRIS_PUPIL_COLOUR is unknown; iris info");
    memset(longest + 5, 'X', sizeof longest - 6);
    snprintf(cut, sizeof cut, "%.48s is unknown; iris info", longest);
    expect(longest, cut);
}

static TEST(settings_and_the_suites_own_are_known)
{
    expect("IRIS_NUM_RANKS", "");
    expect("IRIS_TEST_WHATEVER", "");
    expect("IRIS_C_LIBRARY", "");
    expect("IRIS_UPSTREAM", "");
    expect("IRIS_GPU_BUILD", "");
    expect("IRISH", "");
}

TEST_GROUP(unit);
