/* SPDX-License-Identifier: MIT
 *
 * Iris for C++17, header only: objects that release their handles, errors as
 * exceptions, and kernels as functors for the CPU, nvcc and hipcc.
 *
 *     #include <iris/iris.hpp>
 *
 *     struct scale {
 *         iris::span<float> values;
 *         float factor;
 *
 *         IRIS_BODY(wg)
 *         {
 *             IRIS_LANES (wg, i, values.size())
 *                 values[i] *= factor;
 *         }
 *     };
 *
 *     int main()
 *     {
 *         iris::spawn(2, [](iris::context_ref ctx) {
 *             iris::array<float> values(ctx, 1024);
 *             ctx.launch(scale{values, 2}, 4, 256);
 *             ctx.barrier();
 *         });
 *     }
 *
 * Every object converts to the handle of the C interface, so each call of
 * <iris/iris.h> takes it: iris::check(iris_memset(ctx, ptr, 0, bytes, stream)).
 * docs/cpp.md is the guide.
 *
 * Every class here is move-only, except context_ref and span, which own
 * nothing. An object must be destroyed before its context. Destructors do not
 * throw; the library logs their errors. A HIP program includes
 * <hip/hip_runtime.h> first. */
#ifndef IRIS_IRIS_HPP
#define IRIS_IRIS_HPP

#if __cplusplus < 201703L
#error "<iris/iris.hpp> needs C++17: compile with -std=c++17"
#endif

#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <iris/device.h>
#include <iris/iris.h>

/* A member function that kernels may call. (IRIS_DEVICE is for functions at
 * file scope.) */
#if IRIS_ON_CPU
#define IRIS_MEMBER
#else
#define IRIS_MEMBER __host__ __device__
#endif

/** IRIS_BODY(wg) { ... }: inside a struct, the body of the kernel that the
 *  struct is. `wg` is the workgroup, an iris_wg_t; the struct's fields are the
 *  kernel's arguments. */
#if IRIS_ON_CPU
#define IRIS_BODY(wg) void operator()(IRIS_UNUSED iris_wg_t wg) const
#else
#define IRIS_BODY(wg) __device__ void operator()(IRIS_UNUSED iris_wg_t wg) const
#endif

namespace iris
{

/** A failed call. Its text is the status's name and the message of
 *  iris_last_error(), which names the rank, the cause and the remedy. */
class error : public std::runtime_error
{
  public:
    error(iris_status_t status, const std::string &message)
        : std::runtime_error(iris_status_string(status) + (": " + message)),
          status_(status)
    {
    }
    iris_status_t status() const noexcept { return status_; }

  private:
    iris_status_t status_;
};

/** Throws iris::error unless the status is IRIS_OK. Goes around a call of the C
 *  interface, on the thread that made it. */
inline void check(iris_status_t status)
{
    if (status != IRIS_OK) {
        throw error(status, iris_last_error());
    }
}

/** Elements in a row: an argument of kernels, and nobody's memory. */
template <class T> class span
{
  public:
    IRIS_MEMBER span(T *data = nullptr, size_t size = 0)
        : data_(data), size_(size)
    {
    }
    /** span<T> is a span<const T>, too. */
    template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
    IRIS_MEMBER span(span<U> other) : data_(other.data()), size_(other.size())
    {
    }
    IRIS_MEMBER T &operator[](size_t i) const { return data_[i]; }
    IRIS_MEMBER T *data() const { return data_; }
    IRIS_MEMBER size_t size() const { return size_; }
    IRIS_MEMBER T *begin() const { return data_; }
    IRIS_MEMBER T *end() const { return data_ + size_; }

  private:
    T *data_;
    size_t size_;
};

/* The element type of a C++ type: iris::dtype<float> is IRIS_DTYPE_F32. */
namespace detail
{
template <class T> struct dtype_of; // no such element type
template <> struct dtype_of<bool> {
    static constexpr iris_dtype_t value = IRIS_DTYPE_BOOL;
};
#define IRIS_I_DTYPE_OF(name, type, DTYPE)                        \
    template <> struct dtype_of<type> {                           \
        static constexpr iris_dtype_t value = IRIS_DTYPE_##DTYPE; \
    };
IRIS_I_DTYPE_OF(i8, int8_t, I8)
IRIS_I_DTYPE_OF(u8, uint8_t, U8)
IRIS_I_DTYPE_OF(i16, int16_t, I16)
IRIS_I_DTYPE_OF(u16, uint16_t, U16)
IRIS_I_DTYPE_OF(i32, int32_t, I32)
IRIS_I_DTYPE_OF(u32, uint32_t, U32)
IRIS_I_DTYPE_OF(i64, int64_t, I64)
IRIS_I_DTYPE_OF(u64, uint64_t, U64)
IRIS_I_DTYPE_OF(f16, iris_f16_t, F16)
IRIS_I_DTYPE_OF(bf16, iris_bf16_t, BF16)
IRIS_I_DTYPE_OF(f32, float, F32)
IRIS_I_DTYPE_OF(f64, double, F64)
#undef IRIS_I_DTYPE_OF
} // namespace detail
template <class T>
inline constexpr iris_dtype_t dtype =
    detail::dtype_of<std::remove_cv_t<T>>::value;

/* ---- Kernels ---- */

namespace detail
{

/* The functor's name as the compiler writes it, for reports and traces:
 * "... kernel_name() [with F = scale<int>]". It is never freed. */
template <class F> const char *kernel_name()
{
    static const std::string &name = *[](std::string text) {
        size_t begin = text.find("F = ") + 4;

        return new std::string(text, begin,
                               text.find_first_of(";]", begin) - begin);
    }(__PRETTY_FUNCTION__);

    return name.c_str();
}

#if IRIS_ON_CPU
template <class F> void kernel_cpu(const void *wg, const void *args)
{
    const F copy = *static_cast<const F *>(args); // which no store can change

    IRIS_D_ENTER(wg);
    copy(*static_cast<const iris_wg_t *>(wg));
}
#define IRIS_I_ENTRIES(F) kernel_cpu<F>, nullptr, nullptr
#else
template <class F>
__global__ void IRIS_D_MAX_LANES(IRIS_MAX_LANES) kernel_gpu(F copy)
{
    iris_wg_t wg = {iris_d_wg_id(), iris_d_num_wgs(), iris_d_num_lanes()};

    copy(wg);
}
#define IRIS_I_ENTRIES(F) nullptr, nullptr, (const void *)kernel_gpu<F>
#endif

template <class F> const iris_kernel *kernel()
{
    static_assert(std::is_trivially_copyable_v<F>,
                  "a kernel's arguments are copied byte by byte");
    static_assert(sizeof(F) <= IRIS_LAUNCH_ARGS_MAX,
                  "a kernel's arguments are 4096 bytes at most");
    static const iris_kernel kernel = {IRIS_KERNEL_VERSION, kernel_name<F>(),
                                       sizeof(F), IRIS_I_ENTRIES(F)};

    return &kernel;
}
#undef IRIS_I_ENTRIES

/* A struct of the C interface that an ..._init_sized() function sets up. */
template <class T, void (*init)(T *, size_t)> struct options : T {
    options() { init(this, sizeof(T)); }
};

} // namespace detail

/** struct iris_config and so on, with no field set. */
using config = detail::options<iris_config, iris_config_init_sized>;
using tensor_options =
    detail::options<iris_tensor_options, iris_tensor_options_init_sized>;
using ccl_options =
    detail::options<iris_ccl_options, iris_ccl_options_init_sized>;

/* ---- Contexts ---- */

/** A context that something else owns: iris::spawn(), an iris::context, or C
 *  code. To be copied and passed by value. */
class context_ref
{
  public:
    context_ref(iris_t *iris) noexcept : iris_(iris) {}
    operator iris_t *() const noexcept { return iris_; }

    int rank() const noexcept { return iris_rank(iris_); }
    int num_ranks() const noexcept { return iris_num_ranks(iris_); }
    unsigned num_cus() const noexcept { return (unsigned)iris_num_cus(iris_); }

    /** iris_device_context(): kernels pass it to iris_dev_init(). */
    const int64_t *device() const noexcept
    {
        return iris_device_context(iris_);
    }

    /** iris_launch() of a functor, whose operator() IRIS_BODY() defines. */
    template <class F>
    void launch(const F &functor, unsigned grid, unsigned block,
                iris_stream_t *stream = nullptr) const
    {
        check(iris_launch(iris_, detail::kernel<F>(), grid, block, &functor,
                          sizeof functor, stream));
    }

    /** iris_barrier(). */
    void barrier(iris_stream_t *stream = nullptr,
                 iris_group_t *group = nullptr) const
    {
        check(iris_barrier(iris_, stream, group));
    }

    /** iris_stream_synchronize(). */
    void synchronize(iris_stream_t *stream = nullptr) const
    {
        check(iris_stream_synchronize(iris_, stream));
    }

    /** iris_memcpy_sync() of elements. */
    template <class T> void copy(T *dst, const T *src, size_t count) const
    {
        check(iris_memcpy_sync(iris_, dst, src, count * sizeof(T)));
    }

  protected:
    iris_t *iris_;
};

/** A context of its own, from iris_init() to iris_finalize(). All ranks must
 *  construct and destroy it: both are collective.
 *
 *  If an exception destroys it, the peers cannot be expected to come along: the
 *  destructor interrupts the context first, so that it does not wait, and
 *  peers that wait for this rank get IRIS_ERR_PEER_LOST. */
class context : public context_ref
{
  public:
    explicit context(const iris_config *config = nullptr)
        : context_ref(nullptr), exceptions_(std::uncaught_exceptions())
    {
        check(iris_init(config, &iris_));
    }
    context(context &&other) noexcept
        : context_ref(std::exchange(other.iris_, nullptr)),
          exceptions_(other.exceptions_)
    {
    }
    context &operator=(context &&other) = delete;
    ~context()
    {
        if (iris_ != nullptr && std::uncaught_exceptions() > exceptions_) {
            iris_set_leave_reason(iris_, "an exception ended its context");
            iris_interrupt(iris_);
        }
        (void)iris_finalize(iris_);
    }

    /** iris_finalize(), with its error as an exception. The context is gone in
     *  any case. */
    void finalize() { check(iris_finalize(std::exchange(iris_, nullptr))); }

  private:
    int exceptions_;
};

/** iris_spawn(): calls rank_main(iris::context_ref) on every rank, and throws
 *  the first failure. An iris::error keeps its status and gets the message of
 *  iris_spawn(), which names the rank. Another exception is thrown again as it
 *  is if its rank is a thread of this process; peers are told its text. */
template <class F>
void spawn(int num_ranks, F &&rank_main, const iris_config *config = nullptr)
{
    struct job {
        F &rank_main;
        std::mutex lock;
        std::exception_ptr thrown;

        int fail(const char *reason, iris_t *iris)
        {
            std::lock_guard<std::mutex> guard(lock);

            thrown = thrown ? thrown : std::current_exception();
            iris_set_leave_reason(iris, reason);
            return 1;
        }
        static int run(iris_t *iris, void *arg)
        {
            job *self = static_cast<job *>(arg);

            try {
                self->rank_main(context_ref(iris));
                return IRIS_OK;
            } catch (const error &failure) {
                return failure.status();
            } catch (const std::exception &failure) {
                return self->fail(failure.what(), iris);
            } catch (...) {
                return self->fail("an exception", iris);
            }
        }
    } job = {rank_main, {}, {}};
    iris_status_t status = iris_spawn(config, num_ranks, job.run, &job);

    if (job.thrown) {
        std::rethrow_exception(job.thrown);
    }
    check(status);
}

/* ---- Objects of a context ---- */

namespace detail
{

/* Owns a handle. Release functions return void, and do nothing for NULL. */
template <class T, void (*release)(iris_t *, T *, bool unwinding)> class owner
{
  public:
    operator T *() const noexcept { return handle_; }

    owner(owner &&other) noexcept
        : iris_(other.iris_), handle_(std::exchange(other.handle_, nullptr)),
          exceptions_(other.exceptions_)
    {
    }
    owner &operator=(owner &&other) noexcept
    {
        owner old(std::move(*this)); // released at the end of this function

        iris_ = other.iris_;
        handle_ = std::exchange(other.handle_, nullptr);
        return *this;
    }
    ~owner()
    {
        release(iris_, handle_, std::uncaught_exceptions() > exceptions_);
    }

  protected:
    explicit owner(iris_t *iris) : iris_(iris) {}

    iris_t *iris_;
    T *handle_ = nullptr;
    int exceptions_ = std::uncaught_exceptions();
};

inline void release(iris_t *iris, iris_stream_t *stream, bool)
{
    iris_stream_destroy(iris, stream);
}
inline void release(iris_t *iris, iris_graph_t *graph, bool)
{
    iris_graph_destroy(iris, graph);
}
/* Collective calls: with an exception under way the peers may not make them,
 * and iris_finalize() frees these. */
inline void release(iris_t *iris, iris_group_t *group, bool unwinding)
{
    if (group != nullptr && !unwinding) {
        (void)iris_group_destroy(iris, group);
    }
}
inline void release(iris_t *iris, iris_ccl_workspace_t *workspace,
                    bool unwinding)
{
    if (workspace != nullptr && !unwinding) {
        (void)iris_ccl_workspace_destroy(iris, workspace);
    }
}
/* Local: memory goes at a later collective call, once every rank has said so. */
inline void release(iris_t *iris, void *memory, bool)
{
    if (memory != nullptr) {
        (void)iris_free_later(iris, memory);
    }
}

} // namespace detail

/** A stream of its own. Where a call takes a stream, nullptr is the context's. */
class stream : public detail::owner<iris_stream_t, detail::release>
{
  public:
    explicit stream(context_ref ctx) : owner(ctx)
    {
        check(iris_stream_create(iris_, &handle_));
    }
    /** iris_stream_wrap() of a hipStream_t or cudaStream_t. */
    stream(context_ref ctx, void *native) : owner(ctx)
    {
        check(iris_stream_wrap(iris_, native, &handle_));
    }
};

/** The calls that `enqueue()` makes on a stream, captured. */
class graph : public detail::owner<iris_graph_t, detail::release>
{
  public:
    template <class F>
    graph(context_ref ctx, iris_stream_t *stream, F &&enqueue) : owner(ctx)
    {
        check(iris_capture_begin(iris_, stream));
        try {
            enqueue();
        } catch (...) {
            (void)iris_capture_end(iris_, stream, &handle_);
            throw; // the base class frees the graph
        }
        check(iris_capture_end(iris_, stream, &handle_));
    }
    void launch(iris_stream_t *stream = nullptr) const
    {
        check(iris_graph_launch(iris_, handle_, stream));
    }
};

/** iris_group_create(), and so a collective call of the whole job; it is
 *  nullptr on a rank in no group. The destructor is collective, too. */
class group : public detail::owner<iris_group_t, detail::release>
{
  public:
    group(context_ref ctx, const std::vector<int> &ranks) : owner(ctx)
    {
        check(iris_group_create(iris_, ranks.data(), (int)ranks.size(),
                                &handle_));
    }
    int size() const noexcept { return iris_group_size(iris_, handle_); }
    int index() const noexcept { return iris_group_index(iris_, handle_); }
};

/** Memory of its own for a group's collectives. Construction and destruction
 *  are collective over the group. */
class ccl_workspace
    : public detail::owner<iris_ccl_workspace_t, detail::release>
{
  public:
    explicit ccl_workspace(context_ref ctx, iris_group_t *group = nullptr)
        : owner(ctx)
    {
        check(iris_ccl_workspace_create(iris_, group, &handle_));
    }
};

/** `count` elements on every rank's heap, zeroed. Construction is collective.
 *  The destructor is not: it calls iris_free_later(). To have the memory at
 *  once, call iris_free_deferred() after it. */
template <class T> class array : detail::owner<void, detail::release>
{
    static_assert(std::is_trivially_copyable_v<T>,
                  "elements are copied byte by byte");

  public:
    array(context_ref ctx, size_t count) : owner(ctx), size_(count)
    {
        check(iris_calloc(iris_, count, sizeof(T), &handle_));
    }
    T *data() const noexcept { return static_cast<T *>(handle_); }
    size_t size() const noexcept { return data() == nullptr ? 0 : size_; }
    operator iris::span<T>() const noexcept { return {data(), size()}; }
    operator iris::span<const T>() const noexcept { return {data(), size()}; }

    /** The elements, once the default stream has done its work. */
    std::vector<T> to_host() const
    {
        std::vector<T> elements(size());

        context_ref(iris_).copy(elements.data(), data(), size());
        return elements;
    }

  private:
    size_t size_;
};

/** A tensor that owns its memory: tensor x(ctx, iris_zeros, IRIS_SHAPE(2, 3),
 *  nullptr). `create` is a creation call of <iris/tensor.h> or
 *  <iris/random.h>, `args` are its arguments between the context and the
 *  result. The destructor calls iris_free_later(). */
class tensor
{
  public:
    template <class F, class... Args>
    tensor(context_ref ctx, F create, Args... args) : iris_(ctx)
    {
        check(create(iris_, args..., &tensor_));
    }
    tensor(tensor &&other) noexcept : iris_(other.iris_), tensor_(other.tensor_)
    {
        other.tensor_.owner = nullptr; // a view
    }
    tensor &operator=(tensor &&other) noexcept
    {
        tensor old(std::move(*this)); // released at the end of this function

        iris_ = other.iris_;
        tensor_ = other.tensor_;
        other.tensor_.owner = nullptr;
        return *this;
    }
    ~tensor() { detail::release(iris_, tensor_.owner, false); }

    operator iris_tensor_t *() noexcept { return &tensor_; }
    operator const iris_tensor_t *() const noexcept { return &tensor_; }
    const iris_tensor_t *operator->() const noexcept { return &tensor_; }

    /** The elements of a contiguous tensor; throws for another dtype. */
    template <class T> iris::span<T> span() const
    {
        if (tensor_.dtype != iris::dtype<T> ||
            !iris_tensor_is_contiguous(&tensor_, IRIS_FORMAT_CONTIGUOUS)) {
            throw error(IRIS_ERR_INVALID,
                        "span(): the tensor has elements of another type, or "
                        "gaps; ask for its dtype, or copy it");
        }
        return {static_cast<T *>(tensor_.data),
                (size_t)iris_tensor_numel(&tensor_)};
    }

  private:
    iris_t *iris_;
    iris_tensor_t tensor_ = {};
};

/** An event of the trace, from here to the end of the scope. `event` is an id
 *  of <iris/trace.h>. */
class trace_event
{
  public:
    trace_event(context_ref ctx, int event)
        : iris_(ctx), span_(iris_trace_begin(ctx, event))
    {
    }
    trace_event(const trace_event &) = delete;
    trace_event &operator=(const trace_event &) = delete;
    ~trace_event() { iris_trace_end(iris_, span_); }

  private:
    iris_t *iris_;
    uint64_t span_;
};

} // namespace iris

#endif /* IRIS_IRIS_HPP */
