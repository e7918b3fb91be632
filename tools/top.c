/* SPDX-License-Identifier: MIT
 *
 * iris top: shows from outside how the ranks of a job are doing. It lists jobs,
 * prints the report of one, or updates a table. It only reads, and uses no
 * debugger.
 *
 * A job is found through all processes in /proc: each of its processes has its
 * segment open, which stays readable while it is open here.
 */
#include "config.h"

#include "iris.h"
#include "base/base.h"
#include "report/report.h"

#include <iris/iris.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- Jobs ---- */

/* The most processes between a rank and the process that started the job. */
#define DEPTH 64

/* The most pids that are printed for a job. */
#define MAX_PIDS 8

/* The visited jobs. Each job is found in every one of its processes. */
struct visit {
    struct iris_report_seen seen;
    const char *name; /* the job to find; NULL: print all jobs */
    int fd;           /* segment of that job; -1 */
};

static int is_wanted(const struct visit *visit,
                     const struct iris_report *report)
{
    char name[IRIS_REPORT_NAME];

    iris_i_report_name(report, name);
    if (strcmp(visit->name, name) == 0) {
        return 1;
    }
    for (int i = 0; i < report->num_ranks; i++) {
        if (strcmp(visit->name, report->ranks[i].job) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The first processes of this host: a reader can pass their pids. */
static void print_pids(const struct iris_report *report)
{
    int count = 0;

    for (int i = 0; i < report->num_ranks; i++) {
        if (!report->ranks[i].is_elsewhere && count++ < MAX_PIDS) {
            printf("%s%d", count == 1 ? "" : ",", report->ranks[i].pid);
        }
    }
    printf("%s\n", count > MAX_PIDS ? ",..." : "");
}

static void print_summary(const struct iris_report *report)
{
    const char *id = report->ranks[0].job;
    char name[IRIS_REPORT_NAME];

    iris_i_report_name(report, name);
    printf("%-16s %5d %9.1f  %-20s", name, report->num_ranks,
           (double)(report->now_ns - report->start_ns) / 1e9,
           id[0] == '\0' ? "-" : id);
    print_pids(report);
}

/* Keeps or closes fd. */
static void visit_job(struct visit *visit, int fd)
{
    struct iris_report *report;

    if (iris_i_report_is_new(&visit->seen, fd) &&
        iris_i_report_read(fd, &report) == IRIS_OK) {
        if (visit->name == NULL) {
            print_summary(report);
        } else if (visit->fd < 0 && is_wanted(visit, report)) {
            visit->fd = dup(fd);
        }
        free(report);
    }
    close(fd);
}

static void visit_all(struct visit *visit)
{
    struct dirent *entry;
    DIR *folder = opendir("/proc");

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        int pid = atoi(entry->d_name), fd;

        for (int n = 0; pid > 0 && (fd = iris_i_report_open(pid, n)) >= 0;
             n++) {
            visit_job(visit, fd);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* Prints the jobs that have processes of this user. */
static int list_jobs(void)
{
    struct visit visit = {.fd = -1};

    printf("%-16s %5s %9s  %-20s%s\n", "JOB", "RANKS", "SECONDS", "IRIS_JOB_ID",
           "PROCESSES");
    visit_all(&visit);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* Opens the segment of the job with that name: its IRIS_JOB_ID, or PID.N.
 * Returns -1 without such a job. */
static int find_job(const char *name)
{
    struct visit visit = {.name = name, .fd = -1};

    visit_all(&visit);
    return visit.fd;
}

/* ---- Processes below another one ---- */

/* Whether the process is a descendant of `pid`. Follows a limited number of
 * parents, since they may change. */
static int is_below(int process, int pid)
{
    struct iris_process at;

    for (int i = 0; i < DEPTH && iris_i_process_read(process, &at); i++) {
        process = at.parent;
        if (process == pid) {
            return 1;
        }
    }
    return 0;
}

/* Opens the first job of a process that this one has started, directly or
 * through others such as mpirun. Returns -1 without such a job. */
static int find_job_below(int pid)
{
    struct dirent *entry;
    DIR *folder = opendir("/proc");
    int fd = -1;

    while (folder != NULL && fd < 0 && (entry = readdir(folder)) != NULL) {
        int process = atoi(entry->d_name);

        if (process > 0 && is_below(process, pid)) {
            fd = iris_i_report_open(process, 0);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return fd;
}

/* ---- The table ---- */

#define EVERY_MS 1000
#define DOING 200
#define RANKS 10  /* letters of the first column */
#define FIXED 40  /* letters ahead of the last column */
#define NARROW 60 /* columns that a terminal has at least */
#define UNCUT (FIXED + DOING)

/* Ranks that do the same: one line of the table. */
struct table_row {
    int first, count;
    int waits;          /* number of the first rank's waits */
    double calls, sent; /* per second, of all these ranks */
    uint64_t heap;      /* the largest */
    char doing[DOING];  /* activity of the first rank */
    char key[DOING];    /* the same without times and numbers */
};

struct table {
    struct table_row *rows;
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

static uint64_t count_sent(const struct iris_report_rank *rank)
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

static struct table_row *find_row(struct table *table,
                                  const struct table_row *wanted)
{
    for (int i = 0; i < table->count; i++) {
        if (strcmp(table->rows[i].key, wanted->key) == 0) {
            return &table->rows[i];
        }
    }
    table->rows[table->count] = *wanted;
    return &table->rows[table->count++];
}

static void add_rank_row(struct table *table, const struct iris_report *report,
                         const struct iris_report *before, int i)
{
    const struct iris_report_rank *rank = &report->ranks[i];
    double seconds = (double)(report->now_ns - before->now_ns) / 1e9;
    struct table_row new = {.first = i}, *table_row;

    iris_i_describe_doing(report, i, new.doing, sizeof new.doing);
    make_key(new.doing, new.key);
    for (int w = 0; w < rank->num_waits; w++) {
        new.waits += rank->waits_live[w] || rank->waits[w].ended;
    }
    table_row = find_row(table, &new);
    table_row->count++;
    table_row->calls +=
        (double)(rank->host_calls - before->ranks[i].host_calls) / seconds;
    table_row->sent +=
        (double)(count_sent(rank) - count_sent(&before->ranks[i])) / seconds;
    table_row->heap =
        rank->heap_used > table_row->heap ? rank->heap_used : table_row->heap;
    table->row_of[i] = (int)(table_row - table->rows);
}

/* Rows with few ranks come first, because the others may wait for these. */
static int compare_table_rows(const void *left, const void *right)
{
    const struct table_row *a = left, *b = right;

    return a->count != b->count ? a->count - b->count : a->first - b->first;
}

/* Prints "0-3,6", in RANKS letters. ".." at the end means that there are more. */
static void draw_ranks(const struct table *table, int num_ranks, int table_row)
{
    char text[RANKS + 1] = "", range[32];

    for (int i = 0, end; i < num_ranks; i = end + 1) {
        end = i;
        if (table->row_of[i] != table_row) {
            continue;
        }
        while (end + 1 < num_ranks && table->row_of[end + 1] == table_row) {
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

static void draw_rows(struct table *table, int num_ranks, int width)
{
    printf("%-*s %7s %6s %6s %5s  %s\n", RANKS, "RANKS", "CALLS/S", "SENT/S",
           "HEAP", "WAITS", "DOING");
    for (int i = 0; i < table->count; i++) {
        const struct table_row *table_row = &table->rows[i];

        /* row_of has the numbers from before the sort. */
        draw_ranks(table, num_ranks, table->row_of[table_row->first]);
        printf(" %7.0f", table_row->calls);
        print_bytes(table_row->sent);
        print_bytes((double)table_row->heap);
        printf(" %5d  ", table_row->waits);
        print_cut(table_row->doing, width - FIXED);
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

static int draw_table(const struct iris_report *report,
                      const struct iris_report *before)
{
    size_t ranks = (size_t)report->num_ranks;
    struct table table = {.rows = calloc(ranks, sizeof *table.rows),
                          .row_of = calloc(ranks, sizeof *table.row_of)};
    int ret = table.rows == NULL || table.row_of == NULL ? -1 : 0;

    if (ret == 0) {
        for (int i = 0; i < report->num_ranks; i++) {
            add_rank_row(&table, report, before, i);
        }
        qsort(table.rows, (size_t)table.count, sizeof *table.rows,
              compare_table_rows);
        if (isatty(STDOUT_FILENO)) {
            printf("\033[H\033[J");
        }
        print_cause(report, screen_width());
        draw_rows(&table, report->num_ranks, screen_width());
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

/* Prints a table repeatedly, until all ranks have ended or left. */
static int follow_job(int fd)
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
        over = draw_table(report, before) != 0 || is_over(report) ||
               ferror(stdout);
        lost = report->verdict >= IRIS_VERDICT_STOPPED;
        free(before);
        before = report;
    }
    free(before);
    return lost ? 3 : 0;
}

/* ---- Reports ---- */

/* Time between the readings of a report: long compared with notes, which are
 * written every 5 or 10 ms. */
#define APART_MS 300

static int is_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits > 0 && digits < 10 && text[digits] == '\0';
}

static int fail_process(int pid)
{
    if (errno == ENOENT) {
        fprintf(
            stderr,
            "iris top: process %d has no Iris job and has not started one; "
            "pass the process of a rank, between iris_init and iris_finalize\n",
            pid);
    } else {
        fprintf(stderr, "iris top: process %d: %s%s\n", pid, strerror(errno),
                errno == ESRCH ? "; for a rank that ended pass another one's"
                : errno == EACCES
                    ? "; it is another user's, or may not be looked at"
                    : "");
    }
    return -1;
}

/* Opens the segment that the argument names. Returns -1 after printing a
 * message. */
static int open_job(const char *name)
{
    int fd;

    if (is_number(name)) {
        int why;

        fd = iris_i_report_open(atoi(name), 0);
        why = errno;
        fd = fd < 0 && why != ESRCH ? find_job_below(atoi(name)) : fd;
        if (fd >= 0) {
            return fd;
        }
        if (why != ESRCH) {
            errno = why;
            return fail_process(atoi(name));
        }
    }
    fd = find_job(name);
    if (fd < 0 && is_number(name)) {
        errno = ESRCH;
        return fail_process(atoi(name));
    }
    if (fd < 0) {
        fprintf(stderr,
                "iris top: no job %s of this user; iris top alone lists them\n",
                name);
    }
    return fd;
}

static int print_job(int fd, int json)
{
    struct iris_report *report;
    int status;

    if (iris_i_report_make(fd, APART_MS, &report) != IRIS_OK) {
        fprintf(stderr, "iris top: %s\n", iris_last_error());
        return 1;
    }
    if (json) {
        iris_i_report_json(report, stdout);
    } else {
        iris_i_report_text(report, stdout);
    }
    status = report->verdict >= IRIS_VERDICT_STOPPED ? 3 : 0;
    free(report);
    return fflush(stdout) == 0 ? status : 1;
}

static void print_call(const struct iris_report *report, int rank,
                       const struct iris_record_call *call)
{
    char text[400], took[32] = "under way";

    if (call->end_ns == call->begin_ns) {
        snprintf(took, sizeof took, "-");
    } else if (call->end_ns != 0) {
        snprintf(took, sizeof took, "%.3f",
                 (double)(call->end_ns - call->begin_ns) / 1e6);
    }
    iris_i_describe_call(call, text, sizeof text);
    printf("%4d %10llu %12.6f %10s  %s\n", rank, (unsigned long long)call->id,
           (double)(call->begin_ns - report->start_ns) / 1e9, took, text);
}

static int print_calls(int fd)
{
    struct iris_record_call *calls = malloc(IRIS_RECORD_CALLS * sizeof *calls);
    struct iris_report *report;

    if (calls == NULL || iris_i_report_read(fd, &report) != IRIS_OK) {
        fprintf(stderr, "iris top: %s\n",
                calls == NULL ? "no memory" : iris_last_error());
        free(calls);
        return 1;
    }
    printf("%4s %10s %12s %10s  %s\n", "RANK", "CALL", "SECONDS", "TOOK ms",
           "WHAT");
    for (int rank = 0; rank < report->num_ranks; rank++) {
        const struct iris_report_rank *r = &report->ranks[rank];
        int is_old = r->is_elsewhere && !r->known;
        int count = is_old ? 0 : iris_i_report_calls(fd, rank, calls);

        for (int i = 0; i < count; i++) {
            print_call(report, rank, &calls[i]);
        }
    }
    free(report);
    free(calls);
    return fflush(stdout) == 0 ? 0 : 1;
}

struct top_options {
    int mode; /* 'j', 'c', 'l', or 0 */
    const char *job;
};

static error_t parse_top(int key, char *arg, struct argp_state *state)
{
    struct top_options *options = state->input;

    switch (key) {
    case 'j':
    case 'c':
    case 'l':
        if (options->mode != 0 && options->mode != key) {
            argp_error(state, "pass one of --json, --calls and --live");
        }
        options->mode = key;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0) {
            return ARGP_ERR_UNKNOWN;
        }
        options->job = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->job == NULL && options->mode != 0) {
            argp_error(state, "pass a job or a process");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_top(int argc, char **argv)
{
    static const struct argp_option rows[] = {
        {"json", 'j', NULL, 0, "Print the report as JSON", 0},
        {"calls", 'c', NULL, 0,
         "Print the last 1,024 host calls of each rank, dead or not; of ranks "
         "of other hosts the last 64",
         0},
        {"live", 'l', NULL, 0,
         "Print a table that follows the job, until it ends", 0},
        {0},
    };
    static const struct argp argp = {
        .options = rows,
        .parser = parse_top,
        .args_doc = "[JOB|PID]",
        .doc =
            "Shows what the ranks of a job do and wait for, and the likely "
            "cause if it hangs. PID is the process of any rank that has not "
            "ended, or one that started it, such as mpirun; JOB its "
            "IRIS_JOB_ID, or PID.N for the Nth job of process PID. Without "
            "either: the jobs of this user. Works on stopped ranks, and "
            "shows killed ones as the others have them. Changes nothing.\v"
            "Exit status: 0; 1 if there is no such process or job, or it may "
            "not be read; 2 for a wrong command line; 3 if the job is hung "
            "or lost, or stopped.",
    };
    struct top_options options = {0};
    int fd, status;

    tool_parse(&argp, argc, argv, &options);
    if (options.job == NULL) {
        return list_jobs();
    }
    fd = open_job(options.job);
    if (fd < 0) {
        return 1;
    }
    status = options.mode == 'l'   ? follow_job(fd)
             : options.mode == 'c' ? print_calls(fd)
                                   : print_job(fd, options.mode == 'j');
    close(fd);
    return status;
}
