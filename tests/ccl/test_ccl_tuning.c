/* SPDX-License-Identifier: MIT
 *
 * The tuning file: its rules come before the library's, and what is wrong in it
 * is an error that says where. The rules that iris bench --tune makes of times.
 */
#include "config.h"

#include "support/harness.h"

#include "../../bench/choices.c"

#include "ccl/internal.h"
#include "ccl/ccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file that IRIS_CCL_TUNING names. */
static void tune(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", harness_folder(), name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    setenv("IRIS_CCL_TUNING", path, 1);
}

/* What is chosen for an all_reduce of so many bytes, on the heap. */
static int choose(iris_t *iris, char *buffer, size_t bytes,
                  struct iris_ccl_call *call)
{
    *call = (struct iris_ccl_call){.name = "test",
                                   .op = IRIS_CCL_ALL_REDUCE,
                                   .in = buffer,
                                   .out = buffer,
                                   .count = bytes,
                                   .dtype = IRIS_DTYPE_U8,
                                   .reduce = IRIS_REDUCE_SUM};
    CHECK_OK(iris_i_ccl_take_options(iris, call, NULL));
    CHECK_OK(iris_i_ccl_check(iris, call));
    CHECK_OK(iris_i_ccl_workspace(iris, call));
    CHECK_OK(iris_i_ccl_choose(iris, call));
    return 0;
}

/* Rules of another collective, device or smaller group do not count, nor one
 * whose variant cannot: one_shot does not work in place. Of others the first
 * one does. */
static const char rules[] =
    "# op device members bytes variant cus\n"
    "\n"
    "all_gather cpu any any push 0\n"
    "all_reduce cpu 1 any two_shot_packet 0\n"
    "all_reduce gpu 1 any two_shot_packet 0 # smaller groups'\n"
    "all_reduce cpu 2 100 one_shot 0\n"
    "all_reduce gpu 2 100 one_shot 0\r\n"
    "\tall_reduce cpu 2 100 two_shot   1\n"
    "\tall_reduce gpu 2 100 two_shot   1\n"
    "all_reduce cpu any 3000 two_shot_packet 2000000000\n"
    "all_reduce gpu any 3000 two_shot_packet 2000000000\n"
    "all_reduce cpu any 3001 one_shot_packet 0\n"
    "all_reduce gpu any 3001 one_shot_packet 0";

static int rules_body(iris_t *iris, void *arg)
{
    struct iris_ccl_call call;
    char *buffer;

    CHECK_OK(iris_malloc(iris, 1 << 20, (void **)&buffer));
    CHECK_EQUAL(choose(iris, buffer, 100, &call), 0);
    CHECK_EQUAL(call.variant, IRIS_CCL_TWO_SHOT);
    CHECK_EQUAL(call.cus, 1);
    CHECK_EQUAL(choose(iris, buffer, 101, &call), 0);
    CHECK_EQUAL(call.variant, IRIS_CCL_TWO_SHOT_PACKET);
    CHECK_EQUAL(call.cus, call.workspace->max_cus);
    CHECK_EQUAL(choose(iris, buffer, 3001, &call), 0);
    CHECK_EQUAL(call.variant, IRIS_CCL_ONE_SHOT_PACKET);
    CHECK_EQUAL(choose(iris, buffer, 1 << 20, &call), 0); /* the library's */
    CHECK_EQUAL(call.variant, IRIS_CCL_TWO_SHOT);
    CHECK_EQUAL(call.cus, 0);
    return 0;
}

static TEST(rules_come_before_the_table)
{
    tune("rules", rules);
    harness_run(2, rules_body, NULL);
    unsetenv("IRIS_CCL_TUNING");
}

/* "=2" is for groups of two, and auto leaves smaller calls to the table. */
static const char exact[] = "format 2\n"
                            "all_reduce cpu =3 any two_shot_packet 0\n"
                            "all_reduce gpu =3 any two_shot_packet 0\n"
                            "all_reduce cpu =2 1000 auto 0\n"
                            "all_reduce gpu =2 1000 auto 0\n"
                            "all_reduce cpu =2 2000 two_shot_packet 0\n"
                            "all_reduce gpu =2 2000 two_shot_packet 0\n";

static int exact_body(iris_t *iris, void *arg)
{
    struct iris_ccl_call call;
    int table =
        harness_on_gpu(iris) ? IRIS_CCL_ONE_SHOT_PACKET : IRIS_CCL_TWO_SHOT;
    int three = iris_num_ranks(iris) == 3;
    char *buffer;

    CHECK_OK(iris_malloc(iris, 1 << 20, (void **)&buffer));
    CHECK_EQUAL(choose(iris, buffer, 1000, &call), 0);
    CHECK_EQUAL(call.variant, three ? (int)IRIS_CCL_TWO_SHOT_PACKET : table);
    CHECK_EQUAL(choose(iris, buffer, 1001, &call), 0);
    CHECK_EQUAL(call.variant, IRIS_CCL_TWO_SHOT_PACKET);
    CHECK_EQUAL(choose(iris, buffer, 2001, &call), 0);
    CHECK_EQUAL(call.variant, three ? (int)IRIS_CCL_TWO_SHOT_PACKET : table);
    return 0;
}

static TEST(rules_are_for_what_was_measured)
{
    tune("exact", exact);
    harness_run(2, exact_body, NULL);
    harness_run(3, exact_body, NULL);
    unsetenv("IRIS_CCL_TUNING");
}

/* Rules are read by all ranks' first collective. */
static int wrong_body(iris_t *iris, void *arg)
{
    const char *const *expected = arg;

    CHECK_BAD(iris, iris_ccl_prepare(iris), IRIS_ERR_CONFIG, expected[0],
              expected[1]);
    return 0;
}

static TEST(what_is_wrong_says_where)
{
    static const char *const cases[][3] = {
        {"all_reduce gpu 2 any two_shot 0\n\nreduce gpu 2 any two_shot 0\n",
         "wrong:3: 'reduce'", "all_reduce, all_gather"},
        {"all_reduce tpu 2 any two_shot 0\n", "wrong:1: 'tpu'", "gpu or cpu"},
        {"all_reduce gpu 0 any two_shot 0\n", "wrong:1: '0'", "1 or more"},
        {"all_reduce gpu 2 64K two_shot 0\n", "wrong:1: '64K'", "bytes"},
        {"all_reduce gpu 2 -1 two_shot 0\n", "wrong:1: '-1'", "bytes"},
        {"all_reduce gpu 2 any push 0\n", "wrong:1: 'push'", "a variant"},
        {"all_reduce gpu 2 any ring 0\n", "wrong:1: 'ring'", "a variant"},
        {"all_reduce gpu =0 any auto 0\n", "wrong:1: '=0'", "1 or more"},
        {"all_reduce gpu =any any auto 0\n", "'=any'", "1 or more"},
        {"format 3\nall_reduce gpu 2 any new 0\n", "wrong:1: format '3'",
         "iris bench --tune"},
        {"format two\n", "wrong:1: format 'two'", "iris bench --tune"},
        {"rate gpu link any any 364\n", "wrong:1: 'rate'", "iris bench --tune"},
        {"all_reduce gpu 2 any two_shot some\n", "'some'", "workgroups"},
        {"all_reduce gpu 2 any two_shot\n", "wrong:1: 5 words", "a rule has"},
        {"all_reduce gpu 2 any two_shot 0 0\n", "7 words", "a rule has"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tune("wrong", cases[i][0]);
        harness_run(2, wrong_body, (void *)&cases[i][1]);
    }
    setenv("IRIS_CCL_TUNING", "/nonexistent/rules", 1);
    harness_run(2, wrong_body,
                (void *)&(const char *const[]){"/nonexistent/rules",
                                               "iris bench --tune"});
    setenv("IRIS_CCL_TUNING", harness_folder(), 1);
    harness_run(
        2, wrong_body,
        (void *)&(const char *const[]){"cannot be read", "iris bench --tune"});
    unsetenv("IRIS_CCL_TUNING");
}

/* Ranks that would choose differently learn it before they do. */
static int differing_body(iris_t *iris, void *arg)
{
    struct iris_ccl_tuning *tuning;

    CHECK_OK(iris_ccl_prepare(iris));
    CHECK_OK(iris_i_ccl_tuning(iris, &tuning));
    CHECK_EQUAL(tuning->count, 11);
    tuning->hash += (uint64_t)iris_rank(iris);
    CHECK_BAD(iris, iris_all_reduce_preamble(iris, NULL), IRIS_ERR_MISMATCH,
              "IRIS_CCL_TUNING", "rank 1");
    return 0;
}

static TEST(members_have_the_same_rules)
{
    tune("rules", rules);
    harness_run(2, differing_body, NULL);
    unsetenv("IRIS_CCL_TUNING");
}

/* Made-up times: one_shot_packet is best up to 4,096 bytes and two_shot_packet
 * above. two_shot is 2 % better than that at 16,384 and 5 % at 65,536. */
static double make_time(iris_ccl_variant_t variant, size_t bytes)
{
    double kb = (double)bytes / 1024, two = 4.6 + kb / 4;

    switch (variant) {
    case IRIS_CCL_ONE_SHOT_PACKET:
        return 1 + kb;
    case IRIS_CCL_TWO_SHOT_PACKET:
        return two;
    case IRIS_CCL_TWO_SHOT:
        return bytes == 16384 ? 0.98 * two : bytes == 65536 ? 0.95 * two : 99;
    default:
        return 0; /* refused */
    }
}

struct made_up {
    struct bench_chooser chooser;
    int calls;
    unsigned
        noisy;     /* 1 << variant: its repeats take 1, 2 and 3 times as long */
    int last_call; /* time is over behind it; 0: never */
};

static iris_status_t make_up(void *arg, int op, iris_ccl_variant_t variant,
                             size_t bytes, double *us_p)
{
    struct made_up *made_up = arg;

    made_up->calls++;
    made_up->chooser.is_late =
        made_up->last_call != 0 && made_up->calls > made_up->last_call;
    if (!made_up->chooser.is_late) {
        *us_p =
            make_time(variant, bytes) *
            (made_up->noisy >> variant & 1 ? 1 + made_up->calls / 3 % 3 : 1);
    }
    return op == IRIS_CCL_ALL_REDUCE ? IRIS_OK : IRIS_ERR_INVALID;
}

/* Writes the rules for calls from 256 bytes to 64 KiB. */
static void choose_made_up(struct made_up *made_up, FILE *file, int on_gpu)
{
    made_up->chooser = (struct bench_chooser){.members = 2,
                                              .on_gpu = on_gpu,
                                              .min_bytes = 256,
                                              .max_bytes = 65536,
                                              .size_shift = 1,
                                              .spread = 0.3,
                                              .rules = file,
                                              .measure = make_up,
                                              .arg = made_up};
    assert_int_equal(bench_choose(&made_up->chooser, IRIS_CCL_ALL_REDUCE),
                     IRIS_OK);
}

static int planted_body(iris_t *iris, void *arg)
{
    static const struct {
        size_t bytes;
        iris_ccl_variant_t measured;
    } cases[] = {{1, IRIS_CCL_ONE_SHOT_PACKET},
                 {4096, IRIS_CCL_ONE_SHOT_PACKET},
                 {4097, IRIS_CCL_TWO_SHOT_PACKET},
                 {16384, IRIS_CCL_TWO_SHOT_PACKET}, /* 2 % are no reason */
                 {32768, IRIS_CCL_TWO_SHOT_PACKET},
                 {32769, IRIS_CCL_TWO_SHOT}};
    const int *is_planted = arg;
    struct iris_ccl_call call;
    char *buffer;

    CHECK_OK(iris_malloc(iris, 1 << 20, (void **)&buffer));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQUAL(choose(iris, buffer, cases[i].bytes, &call), 0);
        CHECK_EQUAL(call.variant,
                    *is_planted ? IRIS_CCL_TWO_SHOT_PACKET : cases[i].measured);
    }
    return 0;
}

static TEST(times_correct_a_wrong_table)
{
    struct made_up made_up = {.calls = 0};
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    tune("planted", "all_reduce cpu any any two_shot_packet 0\n"
                    "all_reduce gpu any any two_shot_packet 0\n");
    harness_run(2, planted_body, &(int){1});
    choose_made_up(&made_up, file, 0);
    choose_made_up(&made_up, file, 1);
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, "all_reduce cpu =2 4096 one_shot_packet 0 # "
                                 "5.00 us; two_shot_packet +12 %\n"));
    tune("measured", text);
    harness_run(2, planted_body, &(int){0});
    unsetenv("IRIS_CCL_TUNING");
    free(text);
}

/* A size that is not wholly measured has no rule. */
static TEST(rules_end_with_the_time)
{
    struct made_up made_up = {.last_call = 2 * 3 * 3 + 4};
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    choose_made_up(&made_up, file, 0);
    assert_int_equal(fclose(file), 0);
    assert_memory_equal(text, "all_reduce cpu =2 512 one_shot_packet 0 # ", 42);
    assert_null(strchr(strchr(text, '\n') + 1, '\n'));
    free(text);
}

static TEST(times_that_disagree_make_no_rules)
{
    struct made_up made_up = {.noisy = ~0u};
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    choose_made_up(&made_up, file, 0);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, "");
    assert_true(made_up.chooser.points > 0);
    assert_int_equal(made_up.chooser.unsteady, made_up.chooser.points);
    free(text);
}

/* Calls of 65,536 bytes are fastest by two_shot, if its least time is true. */
static TEST(a_size_in_doubt_has_no_rule)
{
    struct made_up made_up = {.noisy = 1u << IRIS_CCL_TWO_SHOT};
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    choose_made_up(&made_up, file, 0);
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, " =2 32768 two_shot_packet 0 #"));
    assert_null(strstr(text, " 65536 "));
    free(text);
}

static int setting_body(iris_t *iris, void *arg)
{
    CHECK_EQUAL(iris_i_ccl_set_variant(iris, IRIS_CCL_ALL_REDUCE),
                IRIS_CCL_TWO_SHOT_PACKET);
    CHECK_EQUAL(iris_i_ccl_set_variant(iris, IRIS_CCL_BROADCAST),
                IRIS_CCL_PULL);
    CHECK_EQUAL(iris_i_ccl_set_variant(iris, IRIS_CCL_ALL_GATHER),
                IRIS_CCL_AUTO);
    return 0;
}

static TEST(the_setting_names_a_variant_for_each_collective)
{
    setenv("IRIS_CCL",
           "all_reduce=ring,broadcast=pull,all_reduce=two_shot_packet", 1);
    harness_run(1, setting_body, NULL);
    unsetenv("IRIS_CCL");
}

TEST_GROUP(rank);
