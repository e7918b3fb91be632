/* SPDX-License-Identifier: MIT
 *
 * The same in C++: each rank scales a row of numbers and puts it to its right
 * neighbour with a signal, the neighbour waits for the signal and adds its own.
 * Then all ranks reduce. For the CPU, nvcc and hipcc; docs/cpp.md explains it.
 */
#if defined(__HIPCC__) && !defined(__CUDACC__)
#include <hip/hip_runtime.h>
#endif
#include <iris/iris.hpp>

#include <cstdio>
#include <cstdlib>

/* One workgroup puts `values`, times `factor`, into the inbox of `to`. */
struct send {
    const int64_t *context;
    iris::span<float> values;
    iris::span<float> inbox;
    uint64_t *ready; /* symmetric: one signal */
    float factor;
    int to;

    IRIS_BODY(wg)
    {
        iris_dev_t dev = iris_dev_init(context);

        IRIS_WG_LANES (wg, i, values.size()) {
            values[i] *= factor;
        }
        iris_wg_barrier(wg);
        iris_wg_put_signal(wg, dev, values.data(), inbox.data(),
                           values.size() * sizeof(float), ready, 1, to);
    }
};

/* One workgroup waits for the inbox and adds `values` to it. */
struct receive {
    const int64_t *context;
    iris::span<const float> values;
    iris::span<float> inbox;
    uint64_t *ready;

    IRIS_BODY(wg)
    {
        iris_dev_t dev = iris_dev_init(context);

        if (iris_wg_leader(wg)) {
            (void)iris_wait_until(dev, ready, IRIS_CMP_EQ, 1);
        }
        iris_wg_barrier(wg);
        IRIS_WG_LANES (wg, i, values.size()) {
            inbox[i] += values[i];
        }
    }
};

static void rank_main(iris::context_ref ctx)
{
    const size_t count = 1000;
    const int rank = ctx.rank(), ranks = ctx.num_ranks();
    const int right = (rank + 1) % ranks;

    iris::array<float> values(ctx, count), inbox(ctx, count), sums(ctx, count);
    iris::array<uint64_t> ready(ctx, 1);
    iris::stream stream(ctx);
    iris::ccl_options options;

    std::vector<float> mine(count, (float)(rank + 1));
    ctx.copy(values.data(), mine.data(), count);
    ctx.barrier();

    ctx.launch(send{ctx.device(), values, inbox, ready.data(), 2, right}, 1, 64,
               stream);
    ctx.launch(receive{ctx.device(), values, inbox, ready.data()}, 1, 64,
               stream);
    ctx.barrier(stream);

    /* A call of the C interface: the wrappers convert, check() throws. */
    options.stream = stream;
    iris::check(iris_all_reduce(ctx, inbox.data(), sums.data(), count,
                                iris::dtype<float>, IRIS_REDUCE_SUM, &options));
    ctx.synchronize(stream);

    float expected = 0;
    for (int r = 0; r < ranks; r++) {
        expected += (float)(2 * (r + 1) + 2 * ((r + ranks - 1) % ranks + 1));
    }
    for (float sum : sums.to_host()) {
        if (sum != expected) {
            throw std::runtime_error("wrong sum " + std::to_string(sum));
        }
    }
    if (rank == 0) {
        std::printf("%d ranks: every sum is %g\n", ranks, (double)expected);
    }
}

int main(int argc, char **argv)
{
    try {
        iris::spawn(argc > 1 ? std::atoi(argv[1]) : 4, rank_main);
        return 0;
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
}
