/* SPDX-License-Identifier: MIT
 *
 * Threads of the ranks' processes that Iris knows nothing of. They make no call
 * that a record shows until they make it.
 */
#include "config.h"

#include "report/report.h"

#include <dirent.h>
#include <string.h>

/* The library's own have such a name. */
static int is_own(int pid, const char *thread)
{
    char path[320], name[32] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/task/%s/comm", pid, thread);
    file = fopen(path, "re");
    if (file == NULL) { /* it has ended */
        return 1;
    }
    (void)!fgets(name, sizeof name, file);
    fclose(file);
    return strncmp(name, "iris-", 5) == 0;
}

static int count_threads(int pid)
{
    struct dirent *entry;
    char path[64];
    int count = 0;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%d/task", pid);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        count += entry->d_name[0] != '.' && !is_own(pid, entry->d_name);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

/* Where ranks are threads, the main one is in iris_spawn(). */
static int count_helpers(const struct iris_report *report, int pid)
{
    int threads = count_threads(pid), ranks = 0, main_is_rank = 0;

    for (int i = 0; i < report->num_ranks; i++) {
        if (report->ranks[i].known && report->ranks[i].pid == pid) {
            ranks++;
            main_is_rank |= report->ranks[i].tid == pid;
        }
    }
    threads -= ranks + !main_is_rank;
    return threads > 0 ? threads : 0;
}

void iris_i_report_count_helpers(struct iris_report *report)
{
    for (int i = 0; i < report->num_ranks; i++) {
        struct iris_report_rank *rank = &report->ranks[i];
        int before = i - 1;

        if (!rank->known || iris_i_report_has_ended(rank)) {
            continue;
        }
        while (before >= 0 && report->ranks[before].pid != rank->pid) {
            before--;
        }
        rank->helpers = before >= 0 ? report->ranks[before].helpers
                                    : count_helpers(report, rank->pid);
    }
}
