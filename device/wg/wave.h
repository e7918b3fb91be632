/* SPDX-License-Identifier: MIT
 *
 * Wavefronts: operations that their lanes do together, and sums, minima and
 * maxima over the lanes of a wavefront or of a workgroup.
 */
#ifndef IRIS_DEVICE_WAVE_H
#define IRIS_DEVICE_WAVE_H

#include <iris/device/core/value.h>
#include <iris/device/core/vector.h>
#include <iris/device/wg/wg.h>

/* ---- Wavefronts ------------------------------------------------------------
 *
 * A wavefront is 64 lanes of a workgroup on AMD (32 on gfx1250), a warp of 32 on
 * NVIDIA, and on the CPU the workgroup's thread. The last one of a workgroup may
 * have fewer. Kernels give wavefronts work of their own by iris_wave_id():
 *
 *     for (size_t r = iris_wave_id(wg); r < rows; r += iris_num_waves(wg)) {
 *         float sum = 0;
 *
 *         IRIS_WAVE_LANES (wg, c, cols) {
 *             sum += in[r * cols + c];
 *         }
 *         sum = iris_wave_sum_f32(wg, sum);
 *         if (iris_wave_leader(wg)) {
 *             out[r] = sum;
 *         }
 *     }
 *
 * All lanes of a wavefront call the functions iris_wave_* together, with the
 * same arguments except `value`. Other wavefronts need not call them.
 *
 * @use wavefront; never blocks; all nodes
 * @param value  number of this lane
 * @param from_ptr  source, global memory
 * @param to_ptr  target, global memory
 * @param i  name of the index, a size_t
 * @param n  number of indices */

/** Wavefronts of each workgroup. Any lane. */
IRIS_DEVICE uint32_t iris_num_waves(iris_wg_t wg)
{
#if IRIS_ON_CPU
    (void)wg;
    return 1;
#else
    return (wg.num_lanes + IRIS_D_WAVE - 1) / IRIS_D_WAVE;
#endif
}

/** The index of this lane's wavefront in the workgroup, from 0. Any lane. */
IRIS_DEVICE uint32_t iris_wave_id(iris_wg_t wg)
{
    (void)wg;
    return iris_d_uniform(iris_d_lane() / IRIS_D_WAVE);
}

/* This wavefront's lanes. */
IRIS_DEVICE uint32_t iris_d_wave_lanes(iris_wg_t wg)
{
#if IRIS_ON_CPU
    (void)wg;
    return 1;
#else
    uint32_t left = wg.num_lanes - iris_wave_id(wg) * IRIS_D_WAVE;

    return left < IRIS_D_WAVE ? left : IRIS_D_WAVE;
#endif
}

/** True in exactly one lane of each wavefront; on the CPU in any code outside a
 *  lane loop. */
IRIS_DEVICE iris_bool_t iris_wave_leader(iris_wg_t wg)
{
    (void)wg;
    return iris_d_lane() % IRIS_D_WAVE == 0;
}

/** IRIS_WAVE_LANES(wg, i, n) statement: as IRIS_WG_LANES(), and each wavefront
 *  by itself goes through all of [0, n). */
#if IRIS_ON_CPU && \
    IRIS_CHECK_LANES /* lanes of the workgroup and of a wave differ */
#define IRIS_WAVE_LANES(wg, i, n)                               \
    for (size_t i = (iris_cpu_lanes(IRIS_CPU_MEET), (size_t)0), \
                i##_end = ((void)(wg), (n));                    \
         i < i##_end; i++)
#elif IRIS_ON_CPU
#define IRIS_WAVE_LANES(wg, i, n) IRIS_WG_LANES (wg, i, n)
#else
#define IRIS_WAVE_LANES(wg, i, n)                                            \
    for (size_t i = iris_d_lane() % IRIS_D_WAVE, i##_end = (n); i < i##_end; \
         i += iris_d_wave_lanes(wg))
#endif

/** As iris_wg_put(), by one wavefront. The copy is complete for the workgroup
 *  after iris_wg_barrier().
 *  @use CPU nodes */
IRIS_DEVICE void iris_wave_put(iris_wg_t wg, iris_dev_t dev,
                               const void *from_ptr, void *to_ptr, size_t bytes,
                               int to_rank)
{
#if IRIS_ON_CPU
    iris_wg_put(wg, dev, from_ptr, to_ptr, bytes, to_rank);
#else
    iris_d_team_t team = {iris_d_lane() % IRIS_D_WAVE, iris_d_wave_lanes(wg)};

    if (bytes != 0) {
        IRIS_D_HOOK(
            dev.watched && iris_wave_leader(wg),
            IRIS_D_CALL(before_both, dev, from_ptr, dev.rank, to_ptr, to_rank,
                        iris_d_packed(iris_d_reads(IRIS_OP_PUT, 0, bytes))));
        iris_d_wg_bytes_deep(team, iris_d_translate(dev, to_ptr, to_rank),
                             from_ptr, bytes, 0);
        IRIS_D_HOOK(dev.watched && iris_wave_leader(wg),
                    IRIS_D_CALL(after_both, dev, 0));
    }
#endif
}

/* Combines all lanes' bits: lane i takes the value of lane i + step, and the
 * first lane then passes the result to all. So every lane has the same bits. */
IRIS_DEVICE uint64_t iris_d_wave_combine(iris_wg_t wg, enum iris_d_kind kind,
                                         enum iris_op op, uint64_t bits)
{
    uint32_t lane = iris_d_lane() % IRIS_D_WAVE;
    uint32_t lanes = iris_d_wave_lanes(wg);

    IRIS_D_UNROLL
    for (uint32_t step = IRIS_D_WAVE / 2; step > 0; step /= 2) {
        uint32_t from = lane + step < lanes ? lane + step : lane;
        uint64_t other = iris_d_lane_bits(bits, from, lanes);

        if (from != lane) {
            bits = iris_d_combine(kind, op, bits, other);
        }
    }
    return iris_d_lane_bits(bits, 0, lanes);
}

/* iris_d_wave_combine() for the workgroup, in the order of its wavefronts. */
IRIS_DEVICE uint64_t iris_d_wg_combine(iris_wg_t wg, enum iris_d_kind kind,
                                       enum iris_op op, uint64_t bits)
{
#if !IRIS_ON_CPU
    IRIS_WG_LOCAL(uint64_t, parts, 1024 / IRIS_D_WAVE);
    uint32_t waves = iris_num_waves(wg);

    bits = iris_d_wave_combine(wg, kind, op, bits);
    iris_d_wg_barrier();
    if (iris_wave_leader(wg)) {
        parts[iris_wave_id(wg)] = bits;
    }
    iris_d_wg_barrier();
    bits = parts[0];
    for (uint32_t i = 1; i < waves; i++) {
        bits = iris_d_combine(kind, op, bits, parts[i]);
    }
    iris_d_wg_barrier();
#else
    (void)wg;
    (void)kind;
    (void)op;
#if IRIS_CHECK_LANES
    iris_cpu_lanes(IRIS_CPU_MEET);
#endif
#endif
    return bits;
}

/* clang-format off */
/** iris_wave_sum, _min, _max: every lane gets the sum, minimum or maximum of the
 *  values of all lanes of its wavefront, the same bits. On the CPU `value` is
 *  the value of the workgroup's thread, such as a sum over a lane loop. Sums of
 *  floats depend on the number of lanes. The minimum and the maximum of a NaN
 *  and a number are the number. For f32:
 *      float iris_wave_sum_f32(iris_wg_t wg, float value);
 *  @use all nodes */
#define IRIS_D_ROW(name, c_type, verb, OP)                                     \
    IRIS_DEVICE c_type iris_wave_##verb##_##name(iris_wg_t wg, c_type value)   \
    {                                                                          \
        return iris_d_value_##name(iris_d_wave_combine(                        \
            wg, IRIS_D_KIND_##name, IRIS_OP_ATOMIC_##OP,                       \
            iris_d_bits_##name(value)));                                       \
    }
#define IRIS_D_ROWS(name, c_type, arg)                                         \
    IRIS_D_ROW(name, c_type, sum, ADD)                                         \
    IRIS_D_ROW(name, c_type, min, MIN)                                         \
    IRIS_D_ROW(name, c_type, max, MAX)
IRIS_TYPES(IRIS_D_ROWS, )
#undef IRIS_D_ROW

/** iris_wg_sum, _min, _max: as iris_wave_sum, _min, _max, with the values of all
 *  lanes of the workgroup, which call it together, outside lane loops. For f32:
 *      float iris_wg_sum_f32(iris_wg_t wg, float value);
 *  @use workgroup; all nodes */
#define IRIS_D_ROW(name, c_type, verb, OP)                                     \
    IRIS_DEVICE c_type iris_wg_##verb##_##name(iris_wg_t wg, c_type value)     \
    {                                                                          \
        return iris_d_value_##name(iris_d_wg_combine(                          \
            wg, IRIS_D_KIND_##name, IRIS_OP_ATOMIC_##OP,                       \
            iris_d_bits_##name(value)));                                       \
    }
IRIS_TYPES(IRIS_D_ROWS, )
#undef IRIS_D_ROWS
#undef IRIS_D_ROW
/* clang-format on */

#endif /* IRIS_DEVICE_WAVE_H */
