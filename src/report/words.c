/* SPDX-License-Identifier: MIT
 *
 * The contents of a report as text.
 */
#include "config.h"

#include "report/report.h"

#include "backend/backend.h"
#include "base/base.h"

double iris_i_seconds(int64_t ns)
{
    return ns < 0 ? 0 : (double)ns / 1e9;
}

#define append iris_i_append

const char *iris_i_verdict_name(enum iris_hang_verdict verdict)
{
    static const char *const names[] = {"RUNNING",  "LATE", "STOPPED",
                                        "MISMATCH", "HUNG", "LOST"};

    return names[verdict];
}

const char *iris_i_host_op_name(int op)
{
    static const char *const names[] = {
        [IRIS_HOST_LAUNCH] = "launch",
        [IRIS_HOST_KERNEL] = "kernel",
        [IRIS_HOST_SYNCHRONIZE] = "synchronize",
        [IRIS_HOST_COPY] = "copy",
        [IRIS_HOST_SET] = "memset",
        [IRIS_HOST_SIGNAL] = "signal",
        [IRIS_HOST_WAIT] = "wait",
        [IRIS_HOST_GRAPH] = "graph launch",
        [IRIS_HOST_ALLOC] = "malloc",
        [IRIS_HOST_FREE] = "free",
        [IRIS_HOST_BARRIER] = "barrier",
        [IRIS_HOST_BROADCAST] = "broadcast",
        [IRIS_HOST_GROUP_CREATE] = "group create",
        [IRIS_HOST_GROUP_DESTROY] = "group destroy",
        [IRIS_HOST_COLLECTIVE] = "collective",
    };

    return op >= 0 && op < (int)(sizeof names / sizeof names[0]) ? names[op]
                                                                 : "call";
}

int iris_i_host_op_waits(int op)
{
    return op == IRIS_HOST_SYNCHRONIZE || op == IRIS_HOST_ALLOC ||
           op == IRIS_HOST_FREE || op == IRIS_HOST_BARRIER ||
           op == IRIS_HOST_BROADCAST || op == IRIS_HOST_GROUP_CREATE ||
           op == IRIS_HOST_GROUP_DESTROY;
}

const char *iris_i_process_name(char process)
{
    switch (process) {
    case 'R':
        return "running";
    case 'S':
    case 'D':
    case 'I':
        return "sleeping";
    case 'T':
    case 't':
        return "stopped";
    case IRIS_PROCESS_ZOMBIE:
        return "dead, not reaped";
    case IRIS_PROCESS_GONE:
        return "gone";
    default:
        return "not known";
    }
}

const char *iris_i_state_name(unsigned state)
{
    static const char *const names[] = {"joining", "running", "finalized",
                                        "left"};

    return state < sizeof names / sizeof names[0] ? names[state] : "not known";
}

void iris_i_report_name(const struct iris_report *report,
                        char name[IRIS_REPORT_NAME])
{
    snprintf(name, IRIS_REPORT_NAME, "%llu.%llu",
             (unsigned long long)(report->job >> 32),
             (unsigned long long)(report->job & UINT32_MAX));
}

/* ---- Waits ---- */

static const char *cmp_name(int cmp)
{
    return cmp >= IRIS_CMP_EQ && cmp <= IRIS_CMP_GE
               ? iris_i_cmp_name((iris_cmp_t)cmp)
               : "CMP?";
}

void iris_i_say_ranks(struct iris_report *report, const char *marked)
{
    int count = 0, said = 0;

    for (int i = 0; i < report->num_ranks; i++) {
        count += marked[i] != 0;
    }
    iris_i_say(report, "rank%s", count == 1 ? "" : "s");
    for (int i = 0; i < report->num_ranks && said < 8; i++) {
        if (marked[i]) {
            iris_i_say(report, "%s%d", said++ == 0 ? " " : ", ", i);
        }
    }
    if (count > said) {
        iris_i_say(report, " and %d more", count - said);
    }
}

static void describe_list(const char *before, const int16_t *ranks,
                          uint32_t count, char *text, size_t bytes)
{
    append(text, bytes, "%srank%s", before, count > 1 ? "s" : "");
    for (uint32_t i = 0; i < count && i < IRIS_RECORD_EXPECTED; i++) {
        append(text, bytes, "%s %d", i == 0 ? "" : ",", ranks[i]);
    }
    if (count > IRIS_RECORD_EXPECTED) {
        append(text, bytes, " and %u more", count - IRIS_RECORD_EXPECTED);
    }
}

/* Writes nothing for the group of all ranks: most calls use it. */
void iris_i_describe_group(const struct iris_record_wait *wait, char *text,
                           size_t bytes)
{
    if (wait->group > 0) {
        append(text, bytes, " of group %d (", wait->group);
        describe_list("", wait->members, wait->num_members, text, bytes);
        append(text, bytes, ")");
    }
}

static void describe_word(const struct iris_record_wait *wait, char *text,
                          size_t bytes)
{
    unsigned long long at = wait->offset - wait->alloc;

    if (wait->offset == IRIS_RECORD_NOWHERE) {
        append(text, bytes, "a word that is not on its heap");
    } else if (wait->alloc_bytes == 0 || wait->offset < wait->alloc) {
        append(text, bytes, "the word at heap offset %llu",
               (unsigned long long)wait->offset);
    } else if (wait->word[0] != '\0') {
        append(text, bytes, "byte %llu of \"%s\"", at, wait->word);
    } else {
        append(text, bytes,
               "byte %llu of the allocation at heap offset %llu (%llu bytes)",
               at, (unsigned long long)wait->alloc,
               (unsigned long long)wait->alloc_bytes);
    }
}

static void describe_value(const struct iris_record_wait *wait, int64_t value,
                           char *text, size_t bytes)
{
    if (wait->is_unsigned) {
        append(text, bytes, "%llu", (unsigned long long)value);
    } else {
        append(text, bytes, "%lld", (long long)value);
    }
}

static void describe_seen(const struct iris_record_wait *wait, char *text,
                          size_t bytes)
{
    append(text, bytes, " to be %s ", cmp_name(wait->cmp));
    describe_value(wait, wait->value, text, bytes);
    append(text, bytes, "; it is ");
    describe_value(wait, wait->seen, text, bytes);
    if (wait->change_ns == 0) {
        append(text, bytes, " all along, ");
        return;
    }
    append(text, bytes, ", was ");
    describe_value(wait, wait->first_seen, text, bytes);
    append(text, bytes, " at first and last changed %.1f s ago, ",
           iris_i_seconds(wait->update_ns - wait->change_ns));
}

static void describe_spin(const struct iris_record_wait *wait, char *text,
                          size_t bytes)
{
    append(text, bytes, "repeats atomic operations");
    if (wait->word_rank >= 0 && wait->offset != IRIS_RECORD_NOWHERE) {
        append(text, bytes, " on ");
        describe_word(wait, text, bytes);
        append(text, bytes, " of rank %d, which is %lld", wait->word_rank,
               (long long)wait->seen);
    }
    append(text, bytes, ", ");
}

static void describe_age(const struct iris_record_wait *wait, char *text,
                         size_t bytes)
{
    append(text, bytes, "%.1f s",
           iris_i_seconds(wait->update_ns - wait->begin_ns));
    if (wait->place[0] != '\0') {
        append(text, bytes, " (%s)", wait->place);
    }
}

void iris_i_describe_wait(const struct iris_record_wait *wait, char *text,
                          size_t bytes)
{
    text[0] = '\0';
    if (wait->kind == IRIS_WAIT_AGREEMENT) {
        append(text, bytes, "waits in %s", wait->name);
        iris_i_describe_group(wait, text, bytes);
        describe_list(" for ", wait->expected, wait->num_expected, text, bytes);
        append(text, bytes, ", ");
        describe_age(wait, text, bytes);
        return;
    }
    append(text, bytes, "kernel %s, workgroup %u", wait->name, wait->workgroup);
    if (wait->grid != 0) {
        append(text, bytes, " of %u", wait->grid);
    }
    append(text, bytes, ", ");
    if (wait->kind == IRIS_WAIT_SPIN) {
        describe_spin(wait, text, bytes);
        describe_age(wait, text, bytes);
        return;
    }
    append(text, bytes, "waits ");
    if (wait->num_expected > 0) {
        append(text, bytes, "in a barrier");
        iris_i_describe_group(wait, text, bytes);
        describe_list(" for ", wait->expected, wait->num_expected, text, bytes);
        append(text, bytes, ", ");
    }
    append(text, bytes, "for ");
    describe_word(wait, text, bytes);
    describe_seen(wait, text, bytes);
    describe_age(wait, text, bytes);
}

/* ---- Calls ---- */

void iris_i_describe_call(const struct iris_record_call *call, char *text,
                          size_t bytes)
{
    text[0] = '\0';
    append(text, bytes, "%s", iris_i_host_op_name(call->op));
    if (call->place[0] != '\0') {
        append(text, bytes, " (%s)", call->place);
    }
    if (call->kernel[0] != '\0') {
        append(text, bytes, " of %s, grid %u", call->kernel, call->grid);
    }
    if (call->target_rank >= 0) {
        append(text, bytes, " to rank %d", call->target_rank);
    }
    if (call->offset != IRIS_RECORD_NOWHERE && call->op != IRIS_HOST_LAUNCH) {
        append(text, bytes, " at heap offset %llu",
               (unsigned long long)call->offset);
    }
    if (call->bytes != 0) {
        append(text, bytes, ", %llu bytes", (unsigned long long)call->bytes);
    }
    if (call->op == IRIS_HOST_WAIT) {
        append(text, bytes, ", %s %llu", cmp_name(call->cmp),
               (unsigned long long)call->value);
    } else if (call->op == IRIS_HOST_SIGNAL) {
        append(text, bytes, ", value %llu", (unsigned long long)call->value);
    } else if (call->value != 0 && (call->op == IRIS_HOST_COLLECTIVE ||
                                    call->op == IRIS_HOST_BARRIER)) {
        append(text, bytes, ", group %llu", (unsigned long long)call->value);
    }
    if (call->end_ns != 0 && call->status != IRIS_OK) {
        append(text, bytes, ", %s",
               iris_status_string((iris_status_t)call->status));
    }
}

/* ---- The activity of a rank ---- */

static int describe_stream(const struct iris_report *report,
                           const struct iris_report_rank *rank, char *text,
                           size_t bytes)
{
    for (int i = 0; i < rank->num_streams; i++) {
        const struct iris_record_stream *stream = &rank->streams[i];

        if (stream->begun != stream->done) {
            append(text, bytes, "runs kernel %s on stream %llu, %.1f s",
                   stream->kernel, (unsigned long long)stream->number,
                   iris_i_seconds(report->now_ns - stream->begin_ns));
            return 1;
        }
    }
    return 0;
}

static void describe_host(const struct iris_report *report,
                          const struct iris_report_rank *rank, char *text,
                          size_t bytes)
{
    if (rank->busy) {
        append(text, bytes, "is in %s", rank->call);
    } else if (rank->num_open > 0) {
        append(text, bytes, "is in %s%s%s%s, %.1f s",
               iris_i_host_op_name(rank->open[0].op),
               rank->open[0].place[0] == '\0' ? "" : " (", rank->open[0].place,
               rank->open[0].place[0] == '\0' ? "" : ")",
               iris_i_seconds(report->now_ns - rank->open[0].begin_ns));
    } else if (rank->finished.id != 0) {
        append(text, bytes, "is outside the library since its %s, %.1f s (%s)",
               iris_i_host_op_name(rank->finished.op),
               iris_i_seconds(report->now_ns - rank->finished.end_ns),
               iris_i_process_name(rank->process));
    } else {
        append(text, bytes, "is outside the library since iris_init (%s)",
               iris_i_process_name(rank->process));
    }
}

void iris_i_describe_doing(const struct iris_report *report, int i, char *text,
                           size_t bytes)
{
    const struct iris_report_rank *rank = &report->ranks[i];

    text[0] = '\0';
    if (!rank->known && rank->state == IRIS_RANK_JOINING) {
        append(text, bytes, "has no flight record");
        return;
    }
    if (rank->state == IRIS_RANK_LEFT) {
        append(text, bytes, "left the job%s%s",
               rank->reason[0] == '\0' ? " after an error" : ": ",
               rank->reason);
        return;
    }
    if (!rank->known) {
        append(text, bytes,
               "does not answer from another host; by its last message it is "
               "%s%s after %llu collective calls",
               rank->busy ? "in " : "outside collective calls",
               rank->busy ? rank->call : "", (unsigned long long)rank->calls);
        return;
    }
    if (iris_i_rank_is_lost(rank)) {
        append(text, bytes, "died (pid %d)", rank->pid);
        return;
    }
    if (rank->state == IRIS_RANK_FINALIZED) {
        append(text, bytes, "has finalized");
        return;
    }
    if (iris_i_rank_is_stopped(rank)) {
        append(text, bytes, "is stopped (pid %d)", rank->pid);
        return;
    }
    for (int w = 0; w < rank->num_waits; w++) {
        if (iris_i_wait_counts(rank, w) &&
            (!rank->is_free || iris_i_wait_is_of_gpu(&rank->waits[w]))) {
            iris_i_describe_wait(&rank->waits[w], text, bytes);
            return;
        }
    }
    if (!describe_stream(report, rank, text, bytes)) {
        describe_host(report, rank, text, bytes);
    }
}

void iris_i_say_doing(struct iris_report *report, int rank)
{
    char doing[400];

    iris_i_describe_doing(report, rank, doing, sizeof doing);
    iris_i_say(report, "rank %d %s", rank, doing);
}
