/* SPDX-License-Identifier: MIT
 *
 * The readable jobs on this machine, found through all processes in /proc.
 */
#include "config.h"

#include "top.h"
#include "base/base.h"
#include "report/report.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void print_job(const struct iris_report *report)
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
            print_job(report);
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

int top_list(void)
{
    struct visit visit = {.fd = -1};

    printf("%-16s %5s %9s  %-20s%s\n", "JOB", "RANKS", "SECONDS", "IRIS_JOB_ID",
           "PROCESSES");
    visit_all(&visit);
    return fflush(stdout) == 0 ? 0 : 1;
}

int top_find_job(const char *name)
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

int top_find_below(int pid)
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
