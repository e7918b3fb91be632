/* SPDX-License-Identifier: MIT
 *
 * Processes that want iris top to hang or to write to somebody's terminal: what
 * they open under the name of a segment, and what a segment of theirs says.
 */
#include "config.h"

#include "support/harness.h"

#include "control/internal.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOSTILE "a\033[2J\nHUNG: b\xff\xc2\x9b\u202ez"
/* The same, as iris top has it. */
#define HARMLESS "a\\x1b[2J\\x0aHUNG: b\\xff\\xc2\\x9b\\xe2\\x80\\xaez"

/* iris top's output, which ends however long it would take. */
static char *run_top(const char *arguments, int *status_p)
{
    static char text[262144];
    char command[256];
    size_t length;
    FILE *pipe;

    snprintf(command, sizeof command, "timeout -k 1 20 ./iris top %s 2>&1",
             arguments);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    length = fread(text, 1, sizeof text - 1, pipe);
    text[length] = '\0';
    *status_p = WEXITSTATUS(pclose(pipe));
    return text;
}

/* ---- What is opened ---- */

/* A file in the folder of shared memory, without a name. */
static int plant(int what)
{
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/dev/shm/iris-test-%ld", (long)getpid());
    assert_int_equal(mknod(path, (mode_t)what | 0600, 0), 0);
    fd = open(path, what == S_IFIFO ? O_RDONLY | O_NONBLOCK : O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    return fd;
}

static TEST(a_fifo_is_not_opened)
{
    int fd = plant(S_IFIFO), status;
    char argument[32];

    alarm(20);
    assert_int_equal(iris_i_report_open(getpid(), 0), -1);
    assert_int_equal(errno, ENOENT);
    alarm(0);
    snprintf(argument, sizeof argument, "%ld", (long)getpid());
    assert_non_null(strstr(run_top(argument, &status), "has no Iris job"));
    assert_int_equal(status, 1);
    (void)run_top("", &status);
    assert_int_equal(status, 0);
    close(fd);
}

/* One that is linked somewhere, and one of another user. */
static TEST(only_deleted_memory_of_the_process_is_opened)
{
    struct iris_table *segment;
    int fd;

    assert_int_equal(iris_i_segment_create(1, &segment), IRIS_OK);
    fd = iris_i_report_open(getpid(), 0);
    assert_true(fd >= 0);
    close(fd);
    if (getuid() == 0) {
        assert_int_equal(fchown(segment->fd, 12345, 12345), 0);
        assert_int_equal(iris_i_report_open(getpid(), 0), -1);
    }
    iris_i_segment_release(segment);
}

/* Whoever fills a process's table with them cannot keep a reader for ever. */
static TEST(many_segments_come_to_an_end)
{
    struct iris_table *segments[80];
    int count = 0, fd;

    for (int i = 0; i < 80; i++) {
        assert_int_equal(iris_i_segment_create(1, &segments[i]), IRIS_OK);
    }
    while ((fd = iris_i_report_open(getpid(), count)) >= 0) {
        close(fd);
        assert_true(++count <= 80);
    }
    assert_true(count > 32);
    for (int i = 0; i < 80; i++) {
        iris_i_segment_release(segments[i]);
    }
}

/* ---- What a segment says ---- */

static struct iris_table *make_hostile(void)
{
    struct iris_host_event call = {
        .id = 1, .target_rank = -1, .kernel = HOSTILE, .stream = (void *)64};
    struct iris_record_wait wait = {.begin_ns = 1, .update_ns = 2, .ended = 1};
    struct iris_table *segment;
    struct iris_record *record;
    struct iris_shown shown = {.state = IRIS_RANK_RUNNING,
                               .id = (unsigned long long)getpid() << 32 | 1};
    int slot;

    assert_int_equal(iris_i_segment_create(1, &segment), IRIS_OK);
    record = iris_i_records_open(segment, 0);
    assert_non_null(record);
    iris_i_record_open(record, 0, HOSTILE);
    snprintf(wait.name, sizeof wait.name, "%s", HOSTILE);
    iris_i_record_begin(record, &call, 0, 0);
    iris_i_record_end(record, &call, 0, 1);
    call.id = 2;
    iris_i_record_begin(record, &call, 0, 0);
    slot = iris_i_record_wait(record, -1, &wait);
    iris_i_record_wait_over(record, slot, 1);
    iris_i_record_kernel(record, iris_i_record_stream_slot(record, 64), &call,
                         0);
    snprintf(shown.name, sizeof shown.name, "%s", HOSTILE);
    iris_i_board_write(iris_i_records_board(segment, 0), IRIS_SHOW_ALL, &shown);
    return segment;
}

static void check_plain(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c != '\n' && ((unsigned char)*c < 0x20 || *c == 0x7f ||
                           (unsigned char)*c >= 0x80)) {
            print_error("byte 0x%02x in:\n%s\n", (unsigned char)*c, text);
            fail();
        }
    }
    assert_null(strstr(text, "\nHUNG: b"));
}

static TEST(no_text_of_a_record_reaches_the_terminal_as_it_is)
{
    static const char *const options[] = {"", "--json", NULL};
    struct iris_table *segment = make_hostile();
    char argument[64], *text;
    int status;

    for (int i = 0; options[i] != NULL; i++) {
        snprintf(argument, sizeof argument, "%s %ld", options[i],
                 (long)getpid());
        text = run_top(argument, &status);
        check_plain(text);
        assert_non_null(strstr(text, i == 0 ? HARMLESS : "a\\\\x1b[2J"));
    }
    text = run_top("", &status);
    check_plain(text);
    assert_non_null(strstr(text, "a\\x1b[2J"));
    iris_i_segment_release(segment);
}

/* Letters of other languages are no danger. A field that is too short for an
 * escape is cut before it, and so is a text in the middle of a letter. */
static TEST(only_what_is_harmful_is_escaped)
{
    static const char *const bad[] = {"\x1b",     "\x7f",         "\xc0\xaf",
                                      "\xe2\x82", "\xed\xa0\x80", "\xff"};
    char text[16] = "\u00fcber \u65e5\u672c", small[6] = "abc\x1b";
    char added[8] = "";

    iris_i_clean(text, sizeof text);
    assert_string_equal(text, "\u00fcber \u65e5\u672c");
    iris_i_clean(small, sizeof small);
    assert_string_equal(small, "abc");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(iris_i_printed_char(bad[i]), 0);
    }
    iris_i_append(added, sizeof added, "%s", "abcdef\u00fc");
    assert_string_equal(added, "abcdef");
}

TEST_GROUP(unit);
