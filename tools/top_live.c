/* SPDX-License-Identifier: MIT
 *
 * The table that follows a job: the verdict, and one line for all ranks that do
 * the same.
 */
#include "config.h"

#include "top.h"
#include "base/base.h"
#include "report/report.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define EVERY_MS 1000
#define DOING 200
#define RANKS 10  /* letters of the first column */
#define FIXED 40  /* letters ahead of the last column */
#define NARROW 60 /* columns that a terminal has at least */
#define UNCUT (FIXED + DOING)

/* Ranks that do the same: one line of the table. */
struct row {
    int first, count;
    int waits;          /* number of the first rank's waits */
    double calls, sent; /* per second, of all these ranks */
    uint64_t heap;      /* the largest */
    char doing[DOING];  /* activity of the first rank */
    char key[DOING];    /* the same without times and numbers */
};

struct table {
    struct row *rows;
    int *row_of; /* for each rank the index of its row */
    int count;
};

/* Columns of the terminal; UNCUT if the output is a file. */
static int screen_width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    int width = columns == NULL ? 0 : atoi(columns);

    if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        width = size.ws_col;
    }
    return width <= 0 ? UNCUT : width < NARROW ? NARROW : width;
}

/* "1.5M": at most 6 letters. */
static void print_bytes(double bytes)
{
    static const char units[] = "BKMGTP";
    size_t unit = 0;

    while (bytes >= 1000 && unit + 2 < sizeof units) {
        bytes /= 1024;
        unit++;
    }
    printf(" %5.*f%c", unit == 0 ? 0 : 1, bytes, units[unit]);
}

static uint64_t sent(const struct iris_report_rank *rank)
{
    uint64_t all = 0;

    for (int i = 0; i < IRIS_RECORD_PEERS; i++) {
        all += rank->peer_bytes[i];
    }
    return all;
}

static int ends_in(const char *text, size_t length, const char *word)
{
    size_t letters = strlen(word);

    return length >= letters &&
           memcmp(text + length - letters, word, letters) == 0;
}

/* Leaves out "3.4" of "3.4 s", and the numbers of processes and workgroups. */
static void make_key(const char *text, char *key)
{
    size_t length = 0, number;

    while (*text != '\0') {
        number = strspn(text, "0123456789.");
        if (number > 0 && ((strncmp(text + number, " s", 2) == 0 &&
                            !isalpha((unsigned char)text[number + 2])) ||
                           ends_in(key, length, "pid ") ||
                           ends_in(key, length, "workgroup "))) {
            text += number;
            continue;
        }
        number += number == 0;
        memcpy(key + length, text, number);
        length += number;
        text += number;
    }
    key[length] = '\0';
}

static struct row *find_row(struct table *table, const struct row *wanted)
{
    for (int i = 0; i < table->count; i++) {
        if (strcmp(table->rows[i].key, wanted->key) == 0) {
            return &table->rows[i];
        }
    }
    table->rows[table->count] = *wanted;
    return &table->rows[table->count++];
}

static void add_rank(struct table *table, const struct iris_report *report,
                     const struct iris_report *before, int i)
{
    const struct iris_report_rank *rank = &report->ranks[i];
    double seconds = (double)(report->now_ns - before->now_ns) / 1e9;
    struct row new = {.first = i}, *row;

    iris_i_describe_doing(report, i, new.doing, sizeof new.doing);
    make_key(new.doing, new.key);
    for (int w = 0; w < rank->num_waits; w++) {
        new.waits += rank->waits_live[w] || rank->waits[w].ended;
    }
    row = find_row(table, &new);
    row->count++;
    row->calls +=
        (double)(rank->host_calls - before->ranks[i].host_calls) / seconds;
    row->sent += (double)(sent(rank) - sent(&before->ranks[i])) / seconds;
    row->heap = rank->heap_used > row->heap ? rank->heap_used : row->heap;
    table->row_of[i] = (int)(row - table->rows);
}

/* Rows with few ranks come first, because the others may wait for these. */
static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;

    return a->count != b->count ? a->count - b->count : a->first - b->first;
}

/* Prints "0-3,6", in RANKS letters. ".." at the end means that there are more. */
static void print_ranks(const struct table *table, int num_ranks, int row)
{
    char text[RANKS + 1] = "", range[32];

    for (int i = 0, end; i < num_ranks; i = end + 1) {
        end = i;
        if (table->row_of[i] != row) {
            continue;
        }
        while (end + 1 < num_ranks && table->row_of[end + 1] == row) {
            end++;
        }
        snprintf(range, sizeof range, end > i ? "%s%d-%d" : "%s%d",
                 text[0] == '\0' ? "" : ",", i, end);
        if (strlen(text) + strlen(range) > RANKS - 2) {
            strcat(text, "..");
            break;
        }
        strcat(text, range);
    }
    printf("%-*s", RANKS, text);
}

/* Prints the text, or the part that fits and "..". */
static void print_cut(const char *text, int width)
{
    if ((int)strlen(text) > width) {
        printf("%.*s..\n", width - 2, text);
    } else {
        printf("%s\n", text);
    }
}

static void print_rows(struct table *table, int num_ranks, int width)
{
    printf("%-*s %7s %6s %6s %5s  %s\n", RANKS, "RANKS", "CALLS/S", "SENT/S",
           "HEAP", "WAITS", "DOING");
    for (int i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];

        /* row_of has the numbers from before the sort. */
        print_ranks(table, num_ranks, table->row_of[row->first]);
        printf(" %7.0f", row->calls);
        print_bytes(row->sent);
        print_bytes((double)row->heap);
        printf(" %5d  ", row->waits);
        print_cut(row->doing, width - FIXED);
    }
}

/* Prints the verdict, broken at blanks into lines that fit. */
static void print_cause(const struct iris_report *report, int width)
{
    const char *text = report->cause;
    int at = printf("%s:", iris_i_verdict_name(report->verdict));

    while (*text != '\0') {
        int word = (int)strcspn(text, " ");

        if (at + 1 + word > width) {
            at = printf("\n ") - 1;
        }
        at += printf(" %.*s", word, text);
        text += word;
        text += *text == ' ';
    }
    printf("\n");
}

static int print_table(const struct iris_report *report,
                       const struct iris_report *before)
{
    size_t ranks = (size_t)report->num_ranks;
    struct table table = {.rows = calloc(ranks, sizeof *table.rows),
                          .row_of = calloc(ranks, sizeof *table.row_of)};
    int ret = table.rows == NULL || table.row_of == NULL ? -1 : 0;

    if (ret == 0) {
        for (int i = 0; i < report->num_ranks; i++) {
            add_rank(&table, report, before, i);
        }
        qsort(table.rows, (size_t)table.count, sizeof *table.rows,
              compare_rows);
        if (isatty(STDOUT_FILENO)) {
            printf("\033[H\033[J");
        }
        print_cause(report, screen_width());
        print_rows(&table, report->num_ranks, screen_width());
        printf("\n");
        fflush(stdout);
    }
    free(table.rows);
    free(table.row_of);
    return ret;
}

/* Whether the job is over. The segment stays readable while it is open here. */
static int is_over(const struct iris_report *report)
{
    for (int i = 0; i < report->num_ranks; i++) {
        if (!iris_i_rank_has_ended(&report->ranks[i])) {
            return 0;
        }
    }
    return 1;
}

int top_live(int fd)
{
    struct iris_report *before, *report;
    int over = 0, lost = 0;

    if (iris_i_report_read(fd, &before) != IRIS_OK) {
        fprintf(stderr, "iris top: %s\n", iris_last_error());
        return 1;
    }
    while (!over) {
        iris_i_wait_apart(EVERY_MS);
        if (iris_i_report_read(fd, &report) != IRIS_OK) {
            fprintf(stderr, "iris top: %s\n", iris_last_error());
            free(before);
            return 1;
        }
        iris_i_report_judge(report, before);
        over = print_table(report, before) != 0 || is_over(report) ||
               ferror(stdout);
        lost = report->verdict >= IRIS_VERDICT_STOPPED;
        free(before);
        before = report;
    }
    free(before);
    return lost ? 3 : 0;
}
