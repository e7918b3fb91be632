/* SPDX-License-Identifier: MIT
 *
 * Operations of a workgroup as a whole: its barrier, and bulk copies to and
 * from peers with the widest accesses of the target.
 *
 * @use workgroup; never blocks; CPU nodes
 * @param from_ptr  source, global memory
 * @param to_ptr  target, global memory
 * @param src_ptr  source, translated
 * @param dst_ptr  target, translated
 * @param value  number that the signal is set to or increased by
 */
#ifndef IRIS_DEVICE_WG_H
#define IRIS_DEVICE_WG_H

#include <iris/device/wg/kernel.h>
#include <iris/device/core/signal.h>

/* ---- Calls of a workgroup --------------------------------------------------
 *
 * All lanes of the workgroup call these functions together, with the same
 * arguments, outside lane loops. */

/** Waits for all lanes. Afterwards every lane sees the earlier writes of all
 *  lanes to any memory. Each lane's stores have left for their target, so a
 *  later release by one lane covers the writes of all. */
IRIS_DEVICE void iris_wg_barrier(iris_wg_t wg)
{
    IRIS_UNUSED struct iris_cpu_wg *cpu = IRIS_D_SELF();

    (void)wg;
    IRIS_D_HOOK_CPU(cpu, iris_d_before(cpu, NULL, 0, -1,
                                       iris_d_barrier_packed(IRIS_SCOPE_WG)));
    iris_d_wg_barrier();
    IRIS_D_HOOK_CPU(cpu, iris_d_after(cpu, 0, 0));
}

/** Waits until any lane of the workgroup may overwrite the sources of the puts
 *  and copies that its lanes have made. Says nothing of arrival: a later release
 *  by one lane does not cover the other lanes' stores, as it does after
 *  iris_wg_barrier(). On AMD this call does not wait for stores to peers. */
IRIS_DEVICE void iris_wg_flush_source(iris_wg_t wg)
{
    (void)wg;
    iris_d_wg_read_barrier();
}

#if IRIS_ON_CPU
IRIS_DEVICE void iris_d_wg_bytes(iris_wg_t wg, void *to, const void *from,
                                 size_t bytes)
{
    (void)wg;
    iris_d_copy_bytes(to, from, bytes);
}
#else
/* The lanes that share one copy: the calling lane's place among them, and how
 * many there are. */
typedef struct iris_d_team {
    uint32_t lane;
    uint32_t lanes;
} iris_d_team_t;

/* clang-format off */
/* For u32: void iris_d_wg_u32(iris_d_team_t team, char *to, const char *from,
 * size_t count), `count` aligned words, lane by lane. Four loads are in flight
 * before the first store waits for its value. */
#define IRIS_D_WG_WORDS(name)                                                  \
    IRIS_DEVICE void iris_d_wg_##name(iris_d_team_t team, char *to,            \
                                      const char *from, size_t count)          \
    {                                                                          \
        iris_d_##name##_t *t = (iris_d_##name##_t *)to;                        \
        const iris_d_##name##_t *f = (const iris_d_##name##_t *)from;          \
        size_t step = team.lanes, i = team.lane;                               \
        for (; i + 3 * step < count; i += 4 * step) {                          \
            iris_d_##name##_t a = f[i], b = f[i + step];                       \
            iris_d_##name##_t c = f[i + 2 * step], d = f[i + 3 * step];        \
            t[i] = a, t[i + step] = b;                                         \
            t[i + 2 * step] = c, t[i + 3 * step] = d;                          \
        }                                                                      \
        for (; i < count; i += step) {                                         \
            t[i] = f[i];                                                       \
        }                                                                      \
    }
IRIS_D_WG_WORDS(u8)
IRIS_D_WG_WORDS(u16)
IRIS_D_WG_WORDS(u32)
IRIS_D_WG_WORDS(u64)
IRIS_D_WG_WORDS(u128)
#undef IRIS_D_WG_WORDS
/* clang-format on */

/* A lane's words of one round, each a step apart. */
IRIS_DEVICE void iris_d_wg_load(iris_d_u128_t *words, const iris_d_u128_t *from,
                                size_t step, unsigned depth)
{
    IRIS_D_UNROLL
    for (unsigned k = 0; k < depth; k++) {
        words[k] = from[k * step];
    }
}

IRIS_DEVICE void iris_d_wg_store(iris_d_u128_t *to, const iris_d_u128_t *words,
                                 size_t step, unsigned depth)
{
    IRIS_D_UNROLL
    for (unsigned k = 0; k < depth; k++) {
        to[k * step] = words[k];
    }
}

/* The rounds of a long copy of 16-byte words, each with `depth` words per lane.
 * Returns how many words they copied.
 *
 * On gfx9 one counter, vmcnt, counts loads and stores and falls in the order of
 * their issue. A wait for a load is therefore a wait for every older store as
 * well. If loads and stores alternated, each round would take the latency of a
 * load and then of a store. This loop issues the loads of two rounds ahead, and
 * the stores of one round between them. When a store waits for its load,
 * `depth` stores, `depth` loads and its round's other words were issued after
 * that load. LLVM waits with vmcnt(3 * depth - 1). So a round's stores have the
 * time of a whole round to arrive. LLVM knows that number only because every
 * path into the loop issues the same accesses. vmcnt counts to 63, so `depth`
 * is 21 at most. */
IRIS_DEVICE size_t iris_d_wg_rounds(iris_d_team_t team, char *to,
                                    const char *from, size_t count,
                                    unsigned depth)
{
    iris_d_u128_t *t = (iris_d_u128_t *)to + team.lane;
    const iris_d_u128_t *f = (const iris_d_u128_t *)from + team.lane;
    iris_d_u128_t even[IRIS_D_BULK_MAX_DEPTH], odd[IRIS_D_BULK_MAX_DEPTH];
    size_t step = team.lanes, round = depth * step, left = count;

    if (depth == 0 || count < 3 * round) {
        return 0;
    }
    iris_d_wg_load(even, f, step, depth);
    iris_d_wg_load(odd, f + round, step, depth);
    iris_d_wg_store(t, even, step, depth);
    iris_d_wg_load(even, f + 2 * round, step, depth);
    for (; left >= 5 * round; left -= 2 * round) {
        f += 2 * round;
        t += 2 * round;
        iris_d_wg_store(t - round, odd, step, depth);
        iris_d_wg_load(odd, f + round, step, depth);
        iris_d_wg_store(t, even, step, depth);
        iris_d_wg_load(even, f + 2 * round, step, depth);
    }
    iris_d_wg_store(t + round, odd, step, depth);
    iris_d_wg_store(t + 2 * round, even, step, depth);
    return count - left + 3 * round;
}

/* Fewer bytes than a word has, at the end of a range. */
IRIS_DEVICE void iris_d_wg_few(iris_d_team_t team, char *to, const char *from,
                               size_t bytes)
{
    for (size_t i = team.lane; i < bytes; i += team.lanes) {
        to[i] = from[i];
    }
}

/* Copies words of the greatest width to which both sides can be aligned. The
 * rest at either end is copied by bytes, so nothing outside is written. `depth`
 * is a constant at the caller. */
IRIS_DEVICE void iris_d_wg_bytes_deep(iris_d_team_t team, void *to_ptr,
                                      const void *from_ptr, size_t bytes,
                                      unsigned depth)
{
    char *to = (char *)iris_d_global((uintptr_t)to_ptr);
    const char *from = (const char *)iris_d_global((uintptr_t)from_ptr);
    size_t skew = ((uintptr_t)to ^ (uintptr_t)from) & 15;
    /* Logarithm of the width: GPUs have no instruction for a division of this
     * size. */
    unsigned log = skew == 0  ? 4
                   : skew & 1 ? 0
                   : skew & 2 ? 1
                   : skew & 4 ? 2
                              : 3;
    size_t head = (0 - (uintptr_t)to) & (((size_t)1 << log) - 1);
    size_t body, done;

    head = head < bytes ? head : bytes;
    body = (bytes - head) >> log;
    done = head + (body << log);
    iris_d_wg_few(team, to, from, head);
    if (log == 4) {
        size_t rounds =
            iris_d_wg_rounds(team, to + head, from + head, body, depth);

        head += rounds << 4;
        iris_d_wg_u128(team, to + head, from + head, body - rounds);
    } else if (log == 3) {
        iris_d_wg_u64(team, to + head, from + head, body);
    } else if (log == 2) {
        iris_d_wg_u32(team, to + head, from + head, body);
    } else if (log == 1) {
        iris_d_wg_u16(team, to + head, from + head, body);
    } else {
        iris_d_wg_u8(team, to + head, from + head, body);
    }
    iris_d_wg_few(team, to + done, from + done, bytes - done);
}

IRIS_DEVICE_LARGE void iris_d_wg_bytes(iris_wg_t wg, void *to, const void *from,
                                       size_t bytes)
{
    iris_d_team_t team = {iris_d_lane(), wg.num_lanes};

    iris_d_wg_bytes_deep(team, to, from, bytes, IRIS_D_BULK_DEPTH);
}
#endif

/* The copies to, from and between ranks that are far. A copy between two takes
 * a way through this rank. */
#if IRIS_ON_CPU
#define IRIS_D_WG_FAR_BYTES 1024
#define IRIS_D_WG_FAR(what, wg, dev, ...) \
    iris_d_far_##what(iris_d_far_lane((dev).cpu), __VA_ARGS__)
#define IRIS_D_WG_FAR_COPY(wg, ...) iris_d_wg_far_copy(__VA_ARGS__)
IRIS_CPU_COLD void iris_d_wg_far_copy(iris_dev_t dev, const void *src_ptr,
                                      void *dst_ptr, size_t bytes,
                                      int from_rank, int to_rank)
{
    char part[IRIS_D_WG_FAR_BYTES];
    size_t at, count;

    if (!iris_d_is_far(dev, from_rank)) {
        iris_d_far_put(iris_d_far_lane(dev.cpu),
                       iris_d_translate(dev, src_ptr, from_rank), dst_ptr,
                       bytes, to_rank);
    } else if (!iris_d_is_far(dev, to_rank)) {
        iris_d_far_get(iris_d_far_lane(dev.cpu),
                       iris_d_translate(dev, dst_ptr, to_rank), src_ptr, bytes,
                       from_rank);
    } else {
        for (at = 0; at < bytes; at += count) {
            count = bytes - at < sizeof part ? bytes - at : sizeof part;
            iris_d_far_get(iris_d_far_lane(dev.cpu), part,
                           (const char *)src_ptr + at, count, from_rank);
            iris_d_far_put(iris_d_far_lane(dev.cpu), part,
                           (const char *)dst_ptr + at, count, to_rank);
        }
    }
}
#elif IRIS_FAR
#define IRIS_D_WG_FAR(what, wg, dev, ...) \
    iris_d_wg_far_##what(wg, dev, __VA_ARGS__)
#define IRIS_D_WG_FAR_COPY(...) iris_d_wg_far_copy(__VA_ARGS__)

/* This lane's wavefront, as the lanes that copy together. */
IRIS_DEVICE iris_d_team_t iris_d_wg_far_team(iris_wg_t wg)
{
    uint32_t lane = iris_d_lane(), first = lane - lane % IRIS_D_WAVE;
    uint32_t left = wg.num_lanes - first;
    iris_d_team_t team = {lane - first,
                          left < IRIS_D_WAVE ? left : IRIS_D_WAVE};

    return team;
}

/* The request of each wavefront, in turn: its first lane takes the slot, and all
 * copy. */
IRIS_DEVICE_APART void iris_d_wg_far_put(iris_wg_t wg, iris_dev_t dev,
                                         const void *from, const void *to_ptr,
                                         size_t bytes, int rank)
{
    iris_d_far_t self = iris_d_far_self(dev);
    iris_d_team_t team = iris_d_wg_far_team(wg);
    size_t wave = iris_d_lane() / IRIS_D_WAVE;
    size_t num_waves = (wg.num_lanes + IRIS_D_WAVE - 1) / IRIS_D_WAVE, at;

    for (at = wave * IRIS_RING_BYTES; at < bytes;
         at += num_waves * IRIS_RING_BYTES) {
        size_t size =
            bytes - at < IRIS_RING_BYTES ? bytes - at : IRIS_RING_BYTES;
        iris_d_request_t request = {
            IRIS_OP_PUT, rank, (const char *)to_ptr + at, size, 0, 0, 0, 0, 0};
        uint64_t ticket = 0;

        if (team.lane == 0) {
            request.value =
                size <= IRIS_D_FAR_WORD
                    ? iris_d_far_gather((const char *)from + at, size)
                    : 0;
            ticket = iris_d_far_take(&self);
        }
        ticket = iris_d_lane_bits(ticket, 0, team.lanes);
        iris_d_wg_bytes_deep(team, iris_d_ring_slot(self.ring, ticket)->data,
                             (const char *)from + at, size, 0);
        iris_d_wave_barrier(team.lanes);
        if (team.lane == 0) {
            iris_d_ring_post(self.ring, ticket, request,
                             (uintptr_t)request.ptr -
                                 (uintptr_t)self.heap_base);
        }
    }
}

IRIS_DEVICE_APART void iris_d_wg_far_get(iris_wg_t wg, iris_dev_t dev, void *to,
                                         const void *from_ptr, size_t bytes,
                                         int rank)
{
    iris_d_far_t self = iris_d_far_self(dev);
    iris_d_team_t team = iris_d_wg_far_team(wg);
    size_t wave = iris_d_lane() / IRIS_D_WAVE;
    size_t num_waves = (wg.num_lanes + IRIS_D_WAVE - 1) / IRIS_D_WAVE, at;

    for (at = wave * IRIS_RING_BYTES; at < bytes;
         at += num_waves * IRIS_RING_BYTES) {
        size_t size =
            bytes - at < IRIS_RING_BYTES ? bytes - at : IRIS_RING_BYTES;
        iris_d_request_t request = {
            IRIS_OP_GET, rank, (const char *)from_ptr + at, size, 0, 0, 0,
            0,           1};
        uint64_t ticket = 0;

        if (team.lane == 0) {
            ticket = iris_d_far_send_one(&self, request, NULL);
            iris_d_far_answer(&self, ticket);
        }
        ticket = iris_d_lane_bits(ticket, 0, team.lanes);
        if (size > IRIS_D_FAR_WORD) {
            iris_d_wg_bytes_deep(team, (char *)to + at,
                                 iris_d_ring_slot(self.ring, ticket)->data,
                                 size, 0);
        } else if (team.lane == 0) {
            iris_d_far_scatter((char *)to + at,
                               iris_d_ring_slot(self.ring, ticket)->result,
                               size);
        }
        iris_d_wave_barrier(team.lanes);
        if (team.lane == 0) {
            self.awaited = 0;
            iris_d_ring_leave(self.ring, ticket);
        }
    }
}

/* Between two far ranks, word by word: nothing of a lane's own holds more. */
IRIS_DEVICE_APART void iris_d_wg_far_copy(iris_wg_t wg, iris_dev_t dev,
                                          const void *src_ptr, void *dst_ptr,
                                          size_t bytes, int from_rank,
                                          int to_rank)
{
    size_t at, size;

    if (!iris_d_is_far(dev, from_rank)) {
        iris_d_wg_far_put(wg, dev, iris_d_translate(dev, src_ptr, from_rank),
                          dst_ptr, bytes, to_rank);
        return;
    }
    if (!iris_d_is_far(dev, to_rank)) {
        iris_d_wg_far_get(wg, dev, iris_d_translate(dev, dst_ptr, to_rank),
                          src_ptr, bytes, from_rank);
        return;
    }
    for (at = iris_d_lane() * IRIS_D_FAR_WORD; at < bytes;
         at += wg.num_lanes * IRIS_D_FAR_WORD) {
        size = bytes - at < IRIS_D_FAR_WORD ? bytes - at : IRIS_D_FAR_WORD;
        iris_d_far_store(
            dev, (char *)dst_ptr + at,
            iris_d_far_load(dev, (const char *)src_ptr + at, size, from_rank),
            size, to_rank);
    }
}
#else
#define IRIS_D_WG_FAR(what, wg, dev, ...) ((void)0)
#define IRIS_D_WG_FAR_COPY(...) ((void)0)
#endif

/* ---- Bulk copies -----------------------------------------------------------
 *
 * All lanes of the workgroup call a copy together, with the same arguments,
 * outside lane loops. A copy takes any size and any alignment of either side.
 * It writes exactly `bytes` bytes; with 0 bytes it touches no memory. Both
 * sides are global memory. They may be the same place but may not overlap
 * otherwise. A copy orders nothing, like plain stores. It is complete for the
 * workgroup after iris_wg_barrier(), and for a peer after a release that
 * follows it. Its source may be overwritten after iris_wg_flush_source(). */

/** Copies from this rank's `from_ptr`, used as it is, to where to_rank keeps
 *  `to_ptr`. */
IRIS_DEVICE void iris_wg_put(iris_wg_t wg, iris_dev_t dev, const void *from_ptr,
                             void *to_ptr, size_t bytes, int to_rank)
{
    if (bytes != 0) {
        void *to = iris_d_translate(dev, to_ptr, to_rank);

        IRIS_D_HOOK(iris_d_suspect(dev, to_ptr, to_rank, bytes),
                    IRIS_D_CALL(before_both, dev, from_ptr, dev.rank, to_ptr,
                                to_rank, iris_d_bulk(IRIS_OP_PUT, bytes)));
        if (IRIS_UNLIKELY(iris_d_is_far(dev, to_rank))) {
            IRIS_D_WG_FAR(put, wg, dev, from_ptr, to_ptr, bytes, to_rank);
        } else {
            iris_d_wg_bytes(wg, to, from_ptr, bytes);
        }
        IRIS_D_HOOK(dev.watched, IRIS_D_CALL(after_both, dev, 0));
    }
}

/** Copies from where from_rank keeps `from_ptr` to this rank's `to_ptr`, used
 *  as it is. */
IRIS_DEVICE void iris_wg_get(iris_wg_t wg, iris_dev_t dev, const void *from_ptr,
                             void *to_ptr, size_t bytes, int from_rank)
{
    if (bytes != 0) {
        const void *from = iris_d_translate(dev, from_ptr, from_rank);

        IRIS_D_HOOK(iris_d_suspect(dev, from_ptr, from_rank, bytes),
                    IRIS_D_CALL(before_both, dev, from_ptr, from_rank, to_ptr,
                                dev.rank, iris_d_bulk(IRIS_OP_GET, bytes)));
        if (IRIS_UNLIKELY(iris_d_is_far(dev, from_rank))) {
            IRIS_D_WG_FAR(get, wg, dev, to_ptr, from_ptr, bytes, from_rank);
        } else {
            iris_d_wg_bytes(wg, to_ptr, from, bytes);
        }
        IRIS_D_HOOK(dev.watched, IRIS_D_CALL(after_both, dev, 0));
    }
}

/** Copies from where from_rank keeps `src_ptr` to where to_rank keeps
 *  `dst_ptr`. */
IRIS_DEVICE void iris_wg_copy(iris_wg_t wg, iris_dev_t dev, const void *src_ptr,
                              void *dst_ptr, size_t bytes, int from_rank,
                              int to_rank)
{
    if (bytes != 0) {
        const void *from = iris_d_translate(dev, src_ptr, from_rank);
        void *to = iris_d_translate(dev, dst_ptr, to_rank);

        IRIS_D_HOOK(iris_d_suspect(dev, src_ptr, from_rank, bytes) |
                        iris_d_suspect(dev, dst_ptr, to_rank, bytes),
                    IRIS_D_CALL(before_both, dev, src_ptr, from_rank, dst_ptr,
                                to_rank, iris_d_bulk(IRIS_OP_COPY, bytes)));
        if (IRIS_UNLIKELY(iris_d_is_far(dev, from_rank) ||
                          iris_d_is_far(dev, to_rank))) {
            IRIS_D_WG_FAR_COPY(wg, dev, src_ptr, dst_ptr, bytes, from_rank,
                               to_rank);
        } else {
            iris_d_wg_bytes(wg, to, from, bytes);
        }
        IRIS_D_HOOK(dev.watched, IRIS_D_CALL(after_both, dev, 0));
    }
}

/** iris_wg_put(), iris_wg_barrier(), then one lane's iris_signal_set(). A lane
 *  that acquires `value` on to_rank sees the bytes, and all earlier writes of
 *  this workgroup. The memory at `from_ptr` may be overwritten on return. */
IRIS_DEVICE void iris_wg_put_signal(iris_wg_t wg, iris_dev_t dev,
                                    const void *from_ptr, void *to_ptr,
                                    size_t bytes, uint64_t *signal,
                                    uint64_t value, int to_rank)
{
    iris_wg_put(wg, dev, from_ptr, to_ptr, bytes, to_rank);
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, signal, value, to_rank);
    }
}

/** iris_wg_put_signal() with iris_signal_add(): many workgroups, of one rank or
 *  of several, put their own blocks and add to one signal. A lane that acquires
 *  the total sees all their bytes. */
IRIS_DEVICE void iris_wg_put_signal_add(iris_wg_t wg, iris_dev_t dev,
                                        const void *from_ptr, void *to_ptr,
                                        size_t bytes, uint64_t *signal,
                                        uint64_t value, int to_rank)
{
    iris_wg_put(wg, dev, from_ptr, to_ptr, bytes, to_rank);
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_add(dev, signal, value, to_rank);
    }
}

#endif /* IRIS_DEVICE_WG_H */
