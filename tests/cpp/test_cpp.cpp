/* SPDX-License-Identifier: MIT
 *
 * <iris/iris.hpp>: what its objects hold is released, in which order and how
 * they end; failed calls throw with the library's message.
 */
#include <iris/iris.hpp>

#include <cstdio>
#include <cstring>

static int failures;

#define EXPECT(condition)                                                   \
    do {                                                                    \
        if (!(condition)) {                                                 \
            std::fprintf(stderr, "%s:%d: %s: not so\n", __FILE__, __LINE__, \
                         #condition);                                       \
            failures++;                                                     \
        }                                                                   \
    } while (0)

/* Nobody's copies, and nothing that throws on its way. */
template <class T>
constexpr bool moves_only =
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
    std::is_nothrow_move_constructible_v<T> &&
    std::is_nothrow_destructible_v<T>;
static_assert(moves_only<iris::context> && moves_only<iris::array<int>> &&
              moves_only<iris::tensor> && moves_only<iris::stream> &&
              moves_only<iris::graph> && moves_only<iris::group> &&
              moves_only<iris::ccl_workspace>);
static_assert(iris::dtype<const float> == IRIS_DTYPE_F32 &&
              iris::dtype<bool> == IRIS_DTYPE_BOOL &&
              iris::dtype<iris_bf16_t> == IRIS_DTYPE_BF16);

struct fill {
    iris::span<int> values;
    int value;

    IRIS_BODY(wg)
    {
        IRIS_LANES (wg, i, values.size()) {
            values[i] = value + (int)i;
        }
    }
};

template <class T> struct scale {
    iris::span<T> values;
    T factor;

    IRIS_BODY(wg)
    {
        IRIS_LANES (wg, i, values.size()) {
            values[i] *= factor;
        }
    }
};

static size_t live(iris_t *iris)
{
    struct iris_heap_stats stats;

    iris::check(iris_heap_stats(iris, &stats));
    return stats.num_allocs;
}

static void kernels_are_functors(iris::context_ref ctx)
{
    iris::stream stream(ctx);
    iris::array<int> values(ctx, 1000);
    iris::tensor ones(ctx, iris_ones, IRIS_SHAPE(10, 10), nullptr);

    ctx.launch(fill{values, ctx.rank()}, 3, 64, stream);
    ctx.launch(scale<int>{values, 2}, 3, 64, stream);
    ctx.synchronize(stream);
    std::vector<int> seen = values.to_host();
    for (int i = 0; i < 1000; i++) {
        EXPECT(seen[(size_t)i] == 2 * (ctx.rank() + i));
    }
    ctx.launch(scale<float>{ones.span<float>(), 3}, 1, 64);
    ctx.synchronize();
    float last;
    ctx.copy(&last, &ones.span<float>()[99], 1);
    EXPECT(last == 3);
    EXPECT(
        !std::strcmp(iris::detail::kernel<scale<int>>()->name, "scale<int>"));
}

/* What goes when its scope ends is freed at the next collective call. */
static void scopes_release_what_they_hold(iris::context_ref ctx)
{
    iris::check(iris_free_deferred(ctx));
    size_t before = live(ctx);
    {
        iris::array<int> first(ctx, 10), second(ctx, 20);
        iris::tensor tensor(ctx, iris_zeros, IRIS_SHAPE(5), nullptr);
        iris::array<int> moved(std::move(first));

        EXPECT(live(ctx) == before + 3);
        EXPECT(first.data() == nullptr && first.size() == 0);
        EXPECT(moved.size() == 10 && moved.data() != nullptr);
        moved = std::move(second); // the first is released here
        EXPECT(moved.size() == 20 && second.data() == nullptr);
        iris::check(iris_free_deferred(ctx));
        EXPECT(live(ctx) == before + 2);

        iris::tensor other(std::move(tensor));
        EXPECT(tensor->owner == nullptr && other->owner != nullptr);
    }
    iris::check(iris_free_deferred(ctx));
    EXPECT(live(ctx) == before);

    iris_stream_t *gone;
    {
        iris::stream stream(ctx);
        gone = stream;
        EXPECT(iris_stream_synchronize(ctx, gone) == IRIS_OK);
    }
    EXPECT(iris_stream_synchronize(ctx, gone) == IRIS_ERR_INVALID);
}

/* More groups than can be live, so each is destroyed. */
static void groups_end_with_their_scope(iris::context_ref ctx)
{
    for (int i = 0; i < 70; i++) {
        iris::group group(ctx, {1, 0});

        EXPECT(group.size() == 2 && group.index() == 1 - ctx.rank());
        ctx.barrier(nullptr, group);
    }
    iris::ccl_workspace workspace(ctx);
    iris::ccl_options options;
    iris::array<int> sums(ctx, 4);
    options.workspace = workspace;
    ctx.launch(fill{sums, 1}, 1, 64);
    iris::check(iris_all_reduce(ctx, sums.data(), sums.data(), sums.size(),
                                iris::dtype<int>, IRIS_REDUCE_SUM, &options));
    EXPECT(sums.to_host()[3] == 8);
    iris::trace_event event(ctx, IRIS_TRACE_COMPUTE); // records nothing
}

/* The status that `call` throws; IRIS_OK if it throws nothing. */
template <class F> static iris_status_t thrown(F &&call, const char *message)
{
    try {
        call();
    } catch (const iris::error &failure) {
        if (std::strstr(failure.what(), message) == nullptr) {
            std::fprintf(stderr, "not the message: %s\n", failure.what());
            failures++;
        }
        EXPECT(std::strstr(failure.what(),
                           iris_status_string(failure.status())) != nullptr);
        return failure.status();
    }
    return IRIS_OK;
}

static void failed_calls_throw(iris::context_ref ctx)
{
    iris::tensor tensor(ctx, iris_zeros, IRIS_SHAPE(4), nullptr);
    std::string rank = "[" + std::to_string(ctx.rank()) + "/2] ptr_p is NULL";

    EXPECT(thrown([&] { iris::array<char> a(ctx, (size_t)1 << 40); },
                  "IRIS_HEAP_SIZE") == IRIS_ERR_NO_MEMORY);
    EXPECT(thrown([&] { iris::check(iris_malloc(ctx, 1, nullptr)); },
                  rank.c_str()) == IRIS_ERR_INVALID);
    EXPECT(thrown(
               [&] {
                   ctx.launch(fill{{}, 0}, 0, 64);
               },
               "grid") == IRIS_ERR_INVALID);
    EXPECT(thrown([&] { (void)tensor.span<int>(); }, "another type") ==
           IRIS_ERR_INVALID);
    EXPECT(thrown([&] { iris::group g(ctx, {0, 0}); }, "") == IRIS_ERR_INVALID);
    EXPECT(thrown([&] { iris::graph g(ctx, nullptr, [] {}); }, "") ==
           IRIS_ERR_UNSUPPORTED);
    EXPECT(thrown([&] { ctx.barrier(); }, "") == IRIS_OK);
}

/* A rank's exceptions end the job; the other's objects are destroyed while its
 * error is under way, and wait for nobody. */
static void a_rank_that_throws_ends_the_job()
{
    auto rank_main = [](iris::context_ref ctx) {
        iris::array<int> values(ctx, 10);
        iris::group group(ctx, {0, 1});

        if (ctx.rank() == 1) {
            throw std::logic_error("the second rank's own");
        }
        ctx.barrier();
    };
    std::string seen;

    try {
        iris::spawn(2, rank_main);
    } catch (const std::logic_error &failure) {
        seen = failure.what();
    }
    EXPECT(seen == "the second rank's own");
    EXPECT(thrown(
               [] {
                   iris::spawn(2, [](iris::context_ref ctx) {
                       iris::check(ctx.rank() == 1
                                       ? iris_malloc(ctx, 1, nullptr)
                                       : iris_barrier(ctx, nullptr, nullptr));
                   });
               },
               "rank 1") == IRIS_ERR_INVALID);
}

static void a_context_of_its_own()
{
    iris::config config;
    iris_t *gone;

    config.num_ranks = 1;
    iris_config_set(&config, "heap_size", "8M");
    {
        iris::context ctx(&config);
        gone = ctx;
        iris::array<int> values(ctx, 10);
        iris::context other(std::move(ctx)); // moved: the handles stay valid

        ctx.~context(); // finalizes nothing: other has it
        new (&ctx) iris::context(std::move(other));
        ctx.launch(fill{values, 5}, 1, 64);
        EXPECT(values.to_host()[1] == 6);
    }
    EXPECT(iris_barrier(gone, nullptr, nullptr) == IRIS_ERR_STATE);
    iris::context ctx(&config);
    ctx.finalize();
    EXPECT(thrown([&] { ctx.barrier(); }, "NULL") == IRIS_ERR_INVALID);
    config.num_ranks = -5;
    EXPECT(thrown([&] { iris::context bad(&config); }, "") == IRIS_ERR_CONFIG);
    try {
        config.num_ranks = 1;
        iris::context ends(&config);
        iris::stream stream(ends);
        throw 1;
    } catch (int) {
    }
}

int main()
{
    iris::spawn(2, [](iris::context_ref ctx) {
        kernels_are_functors(ctx);
        scopes_release_what_they_hold(ctx);
        groups_end_with_their_scope(ctx);
        failed_calls_throw(ctx);
    });
    a_rank_that_throws_ends_the_job();
    a_context_of_its_own();
    return failures != 0;
}
