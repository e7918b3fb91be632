/* SPDX-License-Identifier: MIT
 *
 * Pieces of events, for those who write a rank's file.
 */
#include "config.h"

#include "trace/writer.h"

/* How often the counter of bytes to a peer is written, at most. */
#define COUNTER_NS 20000

void iris_i_writer_begin(struct iris_writer *writer)
{
    iris_i_out_print(writer->out, "%s\n", writer->is_first ? "" : ",");
    writer->is_first = 0;
}

void iris_i_writer_name_track(struct iris_writer *writer, unsigned char *seen,
                              const char *track, const char *name)
{
    if (*seen) {
        return;
    }
    *seen = 1;
    iris_i_writer_begin(writer);
    iris_i_out_print(writer->out,
                     "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,"
                     "\"tid\":\"%s\",\"args\":{\"name\":\"%s\"}}",
                     iris_i_writer_rank(writer), track, name);
}

/* ---- Times and bytes ---- */

void iris_i_writer_times(struct iris_writer *writer, int64_t begin, int64_t end)
{
    iris_i_out_print(writer->out,
                     "\"ph\":\"%s\",\"ts\":", end > begin ? "X" : "i");
    iris_i_out_us(writer->out, begin);
    if (end > begin) {
        iris_i_out_print(writer->out, ",\"dur\":");
        iris_i_out_us(writer->out, end - begin);
    } else {
        iris_i_out_print(writer->out, ",\"s\":\"t\"");
    }
    writer->last_ns = begin > writer->last_ns ? begin : writer->last_ns;
}

static void write_counter(struct iris_writer *writer, int rank, int64_t ns)
{
    struct iris_writer_peer *peer = &writer->peers[rank];

    iris_i_writer_begin(writer);
    iris_i_out_print(writer->out,
                     "{\"name\":\"bytes with rank %d\",\"cat\":\"iris\","
                     "\"ph\":\"C\",\"pid\":%d,\"ts\":",
                     rank, iris_i_writer_rank(writer));
    iris_i_out_us(writer->out, ns);
    iris_i_out_print(writer->out, ",\"args\":{\"bytes\":%llu}}",
                     (unsigned long long)peer->bytes);
    peer->written = peer->bytes;
    peer->next_ns = ns + COUNTER_NS;
}

void iris_i_writer_count_bytes(struct iris_writer *writer, int rank,
                               uint64_t bytes, int64_t ns)
{
    if (rank < 0 || rank >= iris_i_num_ranks(writer->trace->iris) ||
        rank == iris_i_writer_rank(writer) || bytes == 0) {
        return;
    }
    writer->peers[rank].bytes += bytes;
    if (ns >= writer->peers[rank].next_ns) {
        write_counter(writer, rank, ns);
    }
}

void iris_i_writer_last_counters(struct iris_writer *writer)
{
    for (int rank = 0; rank < iris_i_num_ranks(writer->trace->iris); rank++) {
        if (writer->peers[rank].bytes != writer->peers[rank].written) {
            write_counter(writer, rank, writer->last_ns);
        }
    }
}
