/* SPDX-License-Identifier: MIT
 *
 * Where the buffers of a collective are: on the heap or off it, not on every
 * member alike. What decides how a call is done is what all members know.
 */
#include "config.h"

#include "ccl/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES ((size_t)2080 << 10) /* of a buffer */

/* Buffers on this rank's heap, and the same of memory that its kernels reach
 * and that is not on it, on any device: the next rank's. */
struct places {
    iris_t *iris;
    char *on[2]; /* in, out */
    char *off[2];
    char *image; /* host memory */
};

static int places_open(iris_t *iris, struct places *places)
{
    int next = (iris_rank(iris) + 1) % iris_num_ranks(iris);
    char *lent;

    places->iris = iris;
    places->image = malloc(2 * BYTES);
    CHECK(places->image != NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(iris_malloc(iris, BYTES, (void **)&places->on[i]));
        CHECK_OK(iris_malloc(iris, BYTES, (void **)&lent));
        CHECK_OK(iris_as_remote(iris, lent, next, (void **)&places->off[i]));
    }
    return 0;
}

/* Which of a rank's buffers are off the heap. */
enum { IN_OFF = 1, OUT_OFF = 2 };

static void describe(const struct play *play, const char *what, int off,
                     char text[160])
{
    snprintf(text, 160, "%s: op %d, root %d, %zu %s, in %s, out %s", what,
             (int)play->op, play->root, play->count, play->type->name,
             off & IN_OFF ? "off" : "on", off & OUT_OFF ? "off" : "on");
}

/* Makes the call with buffers at such places; whoever has no `in` of its own
 * passes none. */
static iris_status_t make_call(struct places *places, const struct play *play,
                               int off)
{
    iris_t *iris = places->iris;
    char *in = off & IN_OFF ? places->off[0] : places->on[0];
    char *out = off & OUT_OFF ? places->off[1] : places->on[1];
    size_t parts =
        play->op == PLAY_ALL_REDUCE ? 1 : (size_t)iris_num_ranks(iris);
    size_t elements = play->count * parts;
    size_t bytes = elements * play->type->bytes;
    iris_status_t status;

    memset(places->image, 0x5a, bytes);
    status = harness_write(iris, out, places->image, bytes);
    play->type->fill(places->image, 0, elements,
                     case_seed(iris_rank(iris), play->round));
    if (status == IRIS_OK) {
        status = harness_write(iris, in, places->image, bytes);
    }
    if (play->op == PLAY_BROADCAST && iris_rank(iris) != play->root) {
        in = NULL;
    }
    status = status == IRIS_OK ? play_call(iris, play, in, out) : status;
    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

static int check_result(struct places *places, const struct play *play, int off)
{
    char *expected = places->image + BYTES;
    char text[160];
    size_t bytes = play_expect(places->iris, play, expected);

    CHECK_OK(harness_read(places->iris, places->image,
                          off & OUT_OFF ? places->off[1] : places->on[1],
                          bytes));
    describe(play, "the result", off, text);
    CHECK(memcmp(places->image, expected, bytes) == 0 ||
          harness_failed(__FILE__, __LINE__, text, 0, 1) == 0);
    return 0;
}

static const size_t counts[] = {1, 7, 200, 1500};

static struct play play_of(enum play_op op, size_t count, uint64_t round)
{
    struct play play = {.op = op,
                        .type = &case_types[10], /* f32 */
                        .reduce = IRIS_REDUCE_SUM,
                        .count = count,
                        .round = round};

    iris_ccl_options_init(&play.options);
    return play;
}

/* ---- A broadcast's root alone has an `in` ---- */

static int broadcast_once(struct places *places, const struct play *play,
                          int off)
{
    CHECK_OK(make_call(places, play, off));
    CHECK_EQUAL(check_result(places, play, off), 0);
    CHECK_OK(iris_barrier(places->iris, NULL, NULL)); /* before it is written */
    return 0;
}

static RANK_TEST(a_root_may_have_its_input_anywhere, 2, 3)
{
    struct places places;
    uint64_t round = 0;

    CHECK_EQUAL(places_open(iris, &places), 0);
    for (size_t k = 0; k < 4 * sizeof counts / sizeof counts[0]; k++) {
        for (int off = 0; off < 4; off++) {
            struct play play = play_of(PLAY_BROADCAST, counts[k / 4], ++round);
            iris_ccl_variant_t variant = /* all, and auto */
                play_variant(PLAY_BROADCAST, (int)(k % 4));

            play_set_variant(&play, variant);
            play.root = (int)(round % (uint64_t)iris_num_ranks(iris));
            if (!(off & OUT_OFF) || variant == IRIS_CCL_AUTO ||
                variant == IRIS_CCL_PACKET || !harness_on_gpu(iris)) {
                CHECK_EQUAL(broadcast_once(&places, &play, off), 0);
            } else {
                CHECK_BAD(iris, make_call(&places, &play, off),
                          IRIS_ERR_INVALID, "on the symmetric heap", "pass");
            }
        }
    }
    free(places.image);
    return 0;
}

/* ---- The same places on all members ---- */

static RANK_TEST(buffers_may_be_anywhere_on_all_members_alike, 2, 3)
{
    struct places places;
    uint64_t round = 0;

    CHECK_EQUAL(places_open(iris, &places), 0);
    for (int i = 0; i < 4 * PLAY_BROADCAST; i++) {
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            struct play play =
                play_of((enum play_op)(i / 4), counts[k], ++round);

            CHECK_OK(make_call(&places, &play, i % 4));
            CHECK_EQUAL(check_result(&places, &play, i % 4), 0);
            CHECK_OK(iris_barrier(iris, NULL, NULL));
        }
    }
    free(places.image);
    return 0;
}

/* ---- Different places ---- */

/* What members with buffers in different places do the same call by: packets,
 * or reading inputs from wherever they are (on the CPU), which is legal; or one
 * has packets or steps that another has not, which all members are told. On the
 * CPU a rule of a tuning file that names one_shot, which reads the heap only,
 * does not count. */
enum size { FEW, SOME, MANY, NUM_SIZES };
static const struct {
    int gpu[NUM_SIZES];   /* whether places matter on a GPU */
    int cpu[NUM_SIZES];   /* on the CPU */
    int tuned[NUM_SIZES]; /* on a GPU, where a rule names one_shot */
} matters[PLAY_BROADCAST + 1] = {
    [PLAY_ALL_REDUCE] = {{0, 0, 1}, {0, 0, 0}, {1, 1, 1}},
    [PLAY_ALL_GATHER] = {{0, 0, 1}, {0, 0, 0}, {0}},
    [PLAY_REDUCE_SCATTER] = {{0, 0, 1}, {0, 0, 0}, {0}},
    [PLAY_ALL_TO_ALL] = {{0, 0, 1}, {0, 0, 0}, {0}},
    [PLAY_BROADCAST] = {{0, 0, 1}, {0, 0, 0}, {0}},
};

/* Elements: 28 bytes are packets on every device, 6000 are on a GPU, and of the
 * last there are more than a GPU's packets are for (choose.c). */
static size_t elements_of(enum play_op op, enum size size, int members)
{
    return size == FEW    ? 7
           : size == SOME ? 1500
                          : BYTES / sizeof(float) /
                                (op == PLAY_ALL_REDUCE ? 1 : (size_t)members);
}

/* Whether a member with buffers at such places counts as off the heap. Of a
 * broadcast only the root has an `in`, and may have it anywhere. */
static int is_off(const struct play *play, int off)
{
    return play->op == PLAY_BROADCAST ? (off & OUT_OFF) != 0 : off != 0;
}

/* Rank 0 has its buffers at `off % 4`, the others at `off / 4`. */
static int differ(struct places *places, struct play *play, int off,
                  int do_matter)
{
    iris_t *iris = places->iris;
    int mine = iris_rank(iris) == 0 ? off % 4 : off / 4;
    int fits = !do_matter || is_off(play, off % 4) == is_off(play, off / 4);
    iris_status_t status;
    char text[160];

    CHECK_OK(iris_ccl_workspace_create(iris, NULL, &play->options.workspace));
    status = make_call(places, play, mine);
    describe(play, "the status", mine, text);
    CHECK(status == (fits ? IRIS_OK : IRIS_ERR_MISMATCH) ||
          harness_failed(__FILE__, __LINE__, text, status, fits) == 0);
    if (fits) {
        CHECK_EQUAL(check_result(places, play, mine), 0);
    } else {
        CHECK_MESSAGE("either on all members or on no member");
        CHECK_OK(iris_clear_error(iris));
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_ccl_workspace_destroy(iris, play->options.workspace));
    return 0;
}

/* All sizes of a collective. `tuned`: by the rules below. */
static int differ_all(struct places *places, enum play_op op, int tuned)
{
    iris_t *iris = places->iris;
    int members = iris_num_ranks(iris);
    const int *matter = !harness_on_gpu(iris) ? matters[op].cpu
                        : tuned               ? matters[op].tuned
                                              : matters[op].gpu;

    for (int size = FEW; size < NUM_SIZES; size++) {
        for (int off = 0; off < 16; off++) {
            struct play play =
                play_of(op, elements_of(op, (enum size)size, members),
                        (uint64_t)(size * 16 + off + 1));

            play.root = off % members;
            CHECK_EQUAL(differ(places, &play, off, matter[size]), 0);
        }
    }
    return 0;
}

static int different_body(iris_t *iris, void *arg)
{
    struct places places;
    int tuned = arg != NULL;

    CHECK_EQUAL(places_open(iris, &places), 0);
    for (int op = 0; op < (tuned ? PLAY_ALL_REDUCE : PLAY_BROADCAST) + 1;
         op++) {
        CHECK_EQUAL(differ_all(&places, (enum play_op)op, tuned), 0);
    }
    free(places.image);
    return 0;
}

static TEST(members_may_differ_where_places_do_not_matter)
{
    harness_run(2, different_body, NULL);
    harness_run(3, different_body, NULL);
}

/* On a GPU those off the heap cannot take the rule, and take what comes next. */
static TEST(a_rule_for_the_heap_is_for_gpus)
{
    char path[256];
    FILE *file;
    int tuned = 1;

    snprintf(path, sizeof path, "%s/one_shot", harness_folder());
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("all_reduce cpu any any one_shot 0\n"
                      "all_reduce gpu any any one_shot 0\n",
                      file) >= 0);
    assert_int_equal(fclose(file), 0);
    setenv("IRIS_CCL_TUNING", path, 1);
    harness_run(2, different_body, &tuned);
    harness_run(3, different_body, &tuned);
    unsetenv("IRIS_CCL_TUNING");
}

TEST_GROUP(rank, one_node);
