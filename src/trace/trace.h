/* SPDX-License-Identifier: MIT
 *
 * The interface of src/trace: traces of kernels and host calls; it knows no
 * tensors and no collectives.
 */
#ifndef IRIS_SRC_TRACE_TRACE_H
#define IRIS_SRC_TRACE_TRACE_H

#include <iris/status.h>

#include "base/base.h"
#include "context/context.h"

#include <stddef.h>
#include <stdint.h>

/* ---- json.c ---- */

#define IRIS_JSON_DEPTH 64
#define IRIS_JSON_TEXT 4096
#define IRIS_JSON_KEPT (1 << 20) /* most bytes that are kept */

enum iris_json_token {
    IRIS_JSON_END, /* end of the document */
    IRIS_JSON_ERROR,
    IRIS_JSON_OBJECT,
    IRIS_JSON_OBJECT_END,
    IRIS_JSON_ARRAY,
    IRIS_JSON_ARRAY_END,
    IRIS_JSON_KEY,
    IRIS_JSON_STRING,
    IRIS_JSON_NUMBER,
    IRIS_JSON_WORD, /* true, false, null */
};

/* The reader. `text` is the text of the last key, string, number or word, cut
 * at its size. */
struct iris_json {
    const char *path;
    int fd;
    void *gz;
    uint64_t base; /* offset of the buffer in the uncompressed file */
    size_t position;
    size_t filled;
    int depth;
    char stack[IRIS_JSON_DEPTH]; /* '{' or '[' */
    int state;                   /* tokens that may come next; see
                                  * json.c */
    int ended;                   /* the file has ended */
    size_t length;
    char text[IRIS_JSON_TEXT];
    char error[256]; /* including the offset */
    /* The text of the file since iris_json_keep(). */
    char *kept;
    size_t kept_bytes, kept_capacity, kept_from;
    int keeping;
    char buffer[1 << 16];
};

/* Opens the file, compressed or not, with any name. Returns 0, or -1 with the
 * reason in json->error. */
int iris_i_json_open(struct iris_json *json, const char *path);
void iris_i_json_close(struct iris_json *json);

enum iris_json_token iris_i_json_next(struct iris_json *json);

/* Reads the rest of a value with the first token `token`. Returns its last
 * token, or IRIS_JSON_ERROR. */
enum iris_json_token iris_i_json_skip(struct iris_json *json,
                                      enum iris_json_token token);

/* Number of bytes read so far: the offset of the next token. */
uint64_t iris_i_json_offset(const struct iris_json *json);

/* Starts to keep the text, from the last character of the last token on;
 * returns the text so far. */
void iris_i_json_keep(struct iris_json *json);
const char *iris_i_json_kept(struct iris_json *json, size_t *bytes_p);

/* Reports an error of the caller at the current offset. */
enum iris_json_token iris_i_json_fail(struct iris_json *json, const char *what);

/* A member of an object, and the struct member that it is read into. */
struct iris_json_field {
    const char *name; /* NULL: end of the list */
    /* Stores the text of a string or a number. */
    void (*set)(const struct iris_json *json, void *to, size_t bytes);
    size_t offset, bytes;
};
#define IRIS_JSON_FIELD_OF(type, name, member, set)                    \
    {                                                                  \
        name, set, offsetof(type, member), sizeof(((type *)0)->member) \
    }
#define IRIS_JSON_FIELD(type, member, set) \
    IRIS_JSON_FIELD_OF(type, #member, member, set)

void iris_i_json_set_text(const struct iris_json *json, void *to, size_t bytes);
/* Stores into an int, or into a 64-bit integer. */
void iris_i_json_set_number(const struct iris_json *json, void *to,
                            size_t bytes);

/* The field of the key just read; NULL: unknown. The second function then reads
 * a value with the first token `token`, into the struct if there is a field. */
const struct iris_json_field *
iris_i_json_find(const struct iris_json *json,
                 const struct iris_json_field *fields);
enum iris_json_token iris_i_json_set(struct iris_json *json,
                                     enum iris_json_token token,
                                     const struct iris_json_field *field,
                                     void *to);

/* Reads all members of an object whose begin was read. Returns 0, or -1 after
 * an error. */
int iris_i_json_members(struct iris_json *json,
                        const struct iris_json_field *fields, void *to);

/* ---- merge.c ---- */

#define IRIS_EVENT_MEMBERS 512
#define IRIS_EVENT_NOWHERE UINT64_MAX

/* One event. Missing members are 0 or empty, missing ranks -1. Times are
 * between -2^61 and 2^61 ns, and durations are not negative, so readers may add
 * and subtract a few of them. */
struct iris_event {
    char name[64];
    char cat[16];
    char ph; /* X, i, M, C, s or f */
    int64_t ts_ns;
    int64_t dur_ns;
    int pid;
    char tid[32];
    int target_rank;
    int64_t program_id;
    uint64_t address;
    uint64_t offset; /* IRIS_EVENT_NOWHERE: not in the file */
    uint64_t payload;
    uint64_t value;
    int signal; /* others may wait for the written word */
    int held;   /* a wait whose comparison held */
    int atomic;
    uint64_t launch;
    uint64_t id, stream; /* id of a call or a kernel's run */
    char kernel[64];
    char members[IRIS_EVENT_MEMBERS]; /* ranks of a collective, "0-3,6" */
    /* For a collective of messages: bytes by rank, "1:4096,3:512". */
    char sends[IRIS_EVENT_MEMBERS], receives[IRIS_EVENT_MEMBERS];
    /* For a kernel's run: the id and the name of the public call that launched
     * it. 0: the program itself did. */
    uint64_t call;
    char call_name[64];
    /* For metadata: the name of a track or of an allocation, and the times of
     * its allocation and release. Unknown times are beyond all others. */
    char label[64];
    int64_t born_ns, died_ns;
    const char *raw; /* its text in the file, until the next event */
    size_t raw_bytes;
    size_t ts_begin, ts_end; /* place of the number of "ts" in `raw` */
};

/* The properties of a file. */
struct iris_trace_file {
    int rank; /* -1: of several ranks */
    int world_size;
    /* Number of files whose times are upstream's cycles of 10 ns, not
     * microseconds. */
    int ticks;
    uint64_t num_events, host_events, dropped;
    int64_t clock_error_ns, device_error_ns; /* -1: not in the file */
};

/* Adds another file's numbers to the total of several files. The errors are the
 * largest ones; -1 if one is unknown. */
void iris_i_events_add_file(struct iris_trace_file *total,
                            const struct iris_trace_file *file);

/* Reads the file from the start: calls `event` for each event, and fills
 * *file_p. The unit of times may come late in the file: see ticks above.
 * Returns 0; -1, with the reason in `json->error`; or the value of `event` if
 * that is not 0. */
int iris_i_events_read(struct iris_json *json, struct iris_trace_file *file_p,
                       int (*event)(void *arg, const struct iris_event *event),
                       void *arg);

/* The result of a merge. */
struct iris_merge_report {
    uint64_t events; /* copied */
    uint64_t waits;
    uint64_t joined; /* waits whose signal was found */
    uint64_t early;  /* number of these waits that ended before their signal
                      * began */
    int64_t worst_early_ns;
    int64_t clock_error_ns;  /* largest error in any file, between ranks; -1:
                             * unknown */
    int64_t device_error_ns; /* and between hosts and devices */
    char error[320];
};

/* Merges the files into `out`. Two passes, so that only signals and waits take
 * memory. Returns 0, or -1 with report_p->error. */
int iris_i_merge(char *const *paths, int count, const char *out,
                 struct iris_merge_report *report_p);

/* ---- write.c ---- */

struct iris_out {
    const char *path;      /* owned by the caller */
    struct iris_file file; /* fd -1: not open */
    void *gz;              /* zlib's state; NULL: not compressed */
    int failed;            /* errno of the first failure; 0: no failure */
    int num_elements;      /* elements of the array that is being written */
    FILE *text;            /* buffers; NULL: no memory */
};

/* Start of .json or .json.gz in the name; NULL: it has neither ending. */
const char *iris_i_out_ending(const char *path);

/* Whether the name asks for compression, which builds with HAVE_ZLIB
 * support. */
int iris_i_out_is_gz(const char *path);

/* Opens the file, which has no name yet. iris_i_out_close() reports the first
 * failure here or in the functions below. */
void iris_i_out_open(struct iris_out *out, const char *path);

void iris_i_out_write(struct iris_out *out, const char *text, size_t bytes);
void iris_i_out_print(struct iris_out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Begins the next element of the array, on a new line. */
void iris_i_out_next(struct iris_out *out);

/* Gives the file its name; with `keep` 0, or after a failure, removes it.
 * Returns 0 or an errno. */
int iris_i_out_close(struct iris_out *out, int keep);

/* A place on a timeline. */
struct iris_flow_end {
    int pid;
    char tid[20];
    int64_t ns;
};

/* A signal, or a wait that has ended. */
struct iris_flow_point {
    int rank; /* whose word */
    uint64_t offset;
    uint64_t value; /* value of the word then */
    int64_t begin_ns, end_ns;
    uint64_t bytes, cost;     /* for the user of the points; 0 initially */
    struct iris_flow_end at;  /* the place on the event */
    struct iris_flow_end put; /* for a signal, the put before it; pid -1:
                               * none */
};

struct iris_flow_list {
    struct iris_flow_point *points;
    size_t count;
};

struct iris_flows {
    struct iris_flow_list signals;
    struct iris_flow_list waits;
    struct iris_flow_put *puts; /* the latest puts */
};

/* The place of the event at that time. */
struct iris_flow_end iris_i_flow_end(const struct iris_event *event,
                                     int64_t ns);

/* An arrow of a trace. Ids are unique among the arrows of one `cat`. */
struct iris_flow_arrow {
    const char *name, *cat;
    uint64_t id;
    struct iris_flow_end from, to;
};
void iris_i_flow_write(struct iris_out *out,
                       const struct iris_flow_arrow *arrow);

int iris_i_flows_open(struct iris_flows *flows);
void iris_i_flows_close(struct iris_flows *flows);

/* Adds the event if it is a put, a signal or a wait that held. The events of a
 * workgroup come in order. Returns 0, or -1 without memory. */
int iris_i_flows_add(struct iris_flows *flows, const struct iris_event *event);

/* Call this after all events were added. */
void iris_i_flows_sort(struct iris_flows *flows);

/* The signal that ended the wait. It set the word to the value that the wait
 * saw, and is the last such signal that began before the wait's end. If none
 * began before it, it is the first. NULL: the trace has no such signal. */
const struct iris_flow_point *
iris_i_flows_signal_of(const struct iris_flows *flows,
                       const struct iris_flow_point *wait);

/* ---- export.c ---- */

extern const struct iris_life_ops iris_i_life_ops;

#endif /* IRIS_SRC_TRACE_TRACE_H */
