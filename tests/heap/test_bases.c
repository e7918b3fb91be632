/* SPDX-License-Identifier: MIT
 *
 * The heap-bases file: every byte of it, and what happens when it cannot be
 * written.
 */
#include "config.h"

#include "context/context.h"
#include "heap/heap.h"
#include "support/harness.h"
#include "support/leaks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES 65536

/* What json.dump(..., indent=2) writes. */
static void expect(const iris_t *iris, char *text, size_t bytes)
{
    const int64_t *bases = iris_heap_bases(iris);
    int num_ranks = iris_num_ranks(iris);
    size_t length;

    length = (size_t)snprintf(text, bytes,
                              "{\n  \"rank\": %d,\n  \"num_ranks\": %d,\n"
                              "  \"heap_bases\": [\n",
                              iris_rank(iris), num_ranks);
    for (int rank = 0; rank < num_ranks; rank++) {
        length += (size_t)snprintf(
            text + length, bytes - length, "    \"0x%" PRIx64 "\"%s\n",
            (uint64_t)bases[rank], rank + 1 < num_ranks ? "," : "");
    }
    if (iris_num_nodes(iris) > 1) {
        length += (size_t)snprintf(text + length, bytes - length,
                                   "  ],\n  \"nodes\": [\n");
        for (int rank = 0; rank < num_ranks; rank++) {
            length +=
                (size_t)snprintf(text + length, bytes - length, "    %d%s\n",
                                 rank * iris_num_nodes(iris) / num_ranks,
                                 rank + 1 < num_ranks ? "," : "");
        }
    }
    snprintf(text + length, bytes - length, "  ]\n}");
}

static void path_of(const char *prefix, int rank, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s_rank_%d_heap_bases.json", prefix, rank);
}

static int check_file(iris_t *iris, void *arg)
{
    char path[600], *seen, *expected = malloc(FILE_BYTES);
    int same;

    path_of(getenv("IRIS_HEAP_BASES_PREFIX"), iris_rank(iris), path,
            sizeof path);
    seen = harness_read_file(path);
    CHECK(seen != NULL);
    expect(iris, expected, FILE_BYTES);
    same = strcmp(seen, expected) == 0;
    free(seen);
    free(expected);
    CHECK(same);
    return iris_barrier(iris, NULL, NULL);
}

static TEST(every_rank_writes_its_bases_to_the_byte)
{
    harness_run_all(check_file, NULL);
    harness_run(3, check_file, NULL);
    setenv("IRIS_NODES", "2", 1);
    harness_run(3, check_file, NULL);
    unsetenv("IRIS_NODES");
    assert_int_equal(leaks_found_files(), 0);
}

static TEST(python_would_write_the_same_bytes)
{
    char command[1500], path[600];

    if (system("python3 -c '' 2>/dev/null") != 0) {
        print_message("left out: no python3 to compare with\n");
        skip();
    }
    harness_run(4, check_file, NULL);
    path_of(getenv("IRIS_HEAP_BASES_PREFIX"), 2, path, sizeof path);
    snprintf(command, sizeof command,
             "python3 -c 'import json, sys; t = open(sys.argv[1]).read(); "
             "sys.exit(json.dumps(json.loads(t), indent=2) != t)' %s",
             path);
    assert_int_equal(system(command), 0);
}

/* iris_init() with a prefix. */
static iris_status_t init_with(const char *prefix, iris_t **iris_p)
{
    struct iris_config config;

    iris_config_init(&config);
    config.heap_bases_prefix = prefix;
    return iris_init(&config, iris_p);
}

static TEST(a_prefix_asked_for_must_be_writable)
{
    struct leaks before;
    iris_t *iris = NULL;

    leaks_note(&before);
    assert_int_equal(init_with("/no/such/folder/iris", &iris), IRIS_ERR_SYSTEM);
    assert_true(harness_message_has("/no/such/folder/iris_rank_0_heap_bases"));
    assert_true(harness_message_has("IRIS_HEAP_BASES_PREFIX"));
    assert_true(harness_message_has("IRIS_HEAP_BASES_FILES=0"));
    assert_true(harness_message_has(strerror(ENOENT)));
    assert_true(harness_message_has("[0/1]"));
    assert_null(iris);
    assert_int_equal(leaks_found(&before), 0);
}

static int one_cannot_write(iris_t *iris, void *arg)
{
    return 0;
}

static TEST(all_ranks_fail_when_one_cannot_write)
{
    struct iris_config config;
    struct leaks before;

    leaks_note(&before);
    iris_config_init(&config);
    config.heap_bases_prefix = "/no/such/folder/iris";
    assert_int_equal(iris_spawn(&config, 3, one_cannot_write, NULL),
                     IRIS_ERR_SYSTEM);
    assert_true(harness_message_has("IRIS_HEAP_BASES_PREFIX"));
    assert_int_equal(leaks_found(&before), 0);
}

/* Where a file cannot be: a folder has its name. */
static TEST(a_name_that_is_taken_is_an_error)
{
    char prefix[320], path[600];
    iris_t *iris = NULL;

    snprintf(prefix, sizeof prefix, "%s/taken", harness_folder());
    path_of(prefix, 0, path, sizeof path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(init_with(prefix, &iris), IRIS_ERR_SYSTEM);
    assert_true(harness_message_has("taken_rank_0_heap_bases.json"));
    assert_null(iris);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(leaks_found_files(), 0);
}

static TEST(a_prefix_nobody_chose_is_only_warned_about)
{
    char kept[300], here[1024];
    iris_t *iris = NULL;

    snprintf(kept, sizeof kept, "%s", getenv("IRIS_HEAP_BASES_PREFIX"));
    assert_non_null(getcwd(here, sizeof here));
    unsetenv("IRIS_HEAP_BASES_PREFIX");
    /* Where nobody can make a file, root included. */
    assert_int_equal(chdir("/proc/self"), 0);
    setenv("IRIS_LOG_LEVEL", "off", 1);
    assert_int_equal(iris_init(NULL, &iris), IRIS_OK);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
    assert_int_equal(chdir(here), 0);
    setenv("IRIS_HEAP_BASES_PREFIX", kept, 1);
}

static TEST(an_old_file_is_replaced_whole)
{
    char prefix[320], path[600], *text;
    iris_t *iris = NULL;
    FILE *file;

    snprintf(prefix, sizeof prefix, "%s/old", harness_folder());
    path_of(prefix, 0, path, sizeof path);
    file = fopen(path, "we");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++) {
        fprintf(file, "an old and much longer file\n");
    }
    fclose(file);
    assert_int_equal(init_with(prefix, &iris), IRIS_OK);
    text = harness_read_file(path);
    assert_non_null(text);
    assert_memory_equal(text, "{\n  \"rank\": 0,\n", 15);
    assert_memory_equal(text + strlen(text) - 6, "\n  ]\n}", 6);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
    free(text);
    assert_int_equal(leaks_found_files(), 0);
}

/* Not even where the prefix was asked for and could not be written to. */
static TEST(a_user_can_do_without_the_files)
{
    struct iris_config config;
    iris_t *iris = NULL;
    char prefix[320], path[600];

    iris_config_init(&config);
    config.heap_bases_files = 0;
    config.heap_bases_prefix = "/no/such/folder/iris";
    assert_int_equal(iris_init(&config, &iris), IRIS_OK);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
    setenv("IRIS_HEAP_BASES_FILES", "no", 1);
    snprintf(prefix, sizeof prefix, "%s/none", harness_folder());
    assert_int_equal(init_with(prefix, &iris), IRIS_OK);
    path_of(prefix, 0, path, sizeof path);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
}

/* The form for more ranks than a test can start. */
static TEST(a_thousand_bases_are_written_too)
{
    int64_t *bases = calloc(1000, sizeof *bases);
    iris_t *iris = calloc(1, sizeof *iris);
    char prefix[320], path[600], *seen, *expected = malloc(FILE_BYTES);

    for (int rank = 0; rank < 1000; rank++) {
        bases[rank] = rank == 999 ? INT64_MAX : (int64_t)rank << 30;
    }
    atomic_init(&iris->life, IRIS_LIFE_LIVE);
    iris->pid = getpid();
    iris->log.rank = 999;
    iris->log.num_ranks = 1000;
    iris->heap.memory.log = &iris->log;
    iris->heap.memory.bases = bases;
    snprintf(prefix, sizeof prefix, "%s/many", harness_folder());
    assert_int_equal(iris_i_bases_write(&iris->heap.memory, prefix), IRIS_OK);
    path_of(prefix, 999, path, sizeof path);
    seen = harness_read_file(path);
    assert_non_null(seen);
    expect(iris, expected, FILE_BYTES);
    assert_string_equal(seen, expected);
    free(seen);
    free(expected);
    free(iris);
    free(bases);
}

TEST_GROUP(unit);
