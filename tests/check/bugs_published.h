/* SPDX-License-Identifier: MIT
 *
 * Bugs of other projects, reduced to their order of accesses; each twin is the
 * fix that was made or proposed. The comments name the issue or pull request.
 */
#ifndef IRIS_TESTS_CHECK_BUGS_PUBLISHED_H
#define IRIS_TESTS_CHECK_BUGS_PUBLISHED_H

#include "check/bug.h"
#include "check/bugs_hosts.h"

/* ROCm/iris 462: the lock of a tile that peers poll is set at GPU scope. */
BUG(tile_lock_of_agent, "wider scope", 1, 2)
{
    if (d.rank == 0) {
        ONE(iris_store(d, x, 7, 0));
        CHANGE(iris_atomic_xchg(d, f, 1, 0, REL, wrong ? AGENT : SYS));
    } else if (d.rank == 1) {
        while (iris_atomic_add(d, f, 0, 0, ACQ, SYS) == 0) {
        }
        OTHER(iris_load(d, x, 0));
    }
}

/* ROCm/iris 215: locks by plain stores. */
BUG(tile_lock_plain, "atomic flag", 1, 2)
{
    if (d.rank == 0) {
        produce(d, x);
        if (wrong) {
            CHANGE(iris_store(d, f, 1, 1));
        } else {
            iris_atomic_xchg(d, f, 1, 1, REL, SYS);
        }
    } else if (d.rank == 1) {
        receive(d, x, f);
    }
}

/* ROCm/aiter 4786: peers' signals are loaded relaxed, at device scope. */
BUG(start_signal_of_agent, "wider scope", 1, 2)
{
    if (d.rank == 0) {
        send(d, x, f);
    } else if (d.rank == 1) {
        CHANGE_BELOW;
        while (iris_atomic_load(d, f, 1, ACQ, wrong ? AGENT : SYS) == 0) {
        }
        consume(d, x);
    }
}

/* ROCm/aiter 3290: "ready" is sent with no fence behind the input's stores. */
BUG(ready_without_fence, "release", 1, 2)
{
    if (d.rank == 0) {
        ONE(iris_store(d, x, 7, 0));
        iris_fence(wrong ? RLX : REL, SYS);
        CHANGE(iris_atomic_store(d, f, 1, 1, RLX, SYS));
    } else if (d.rank == 1) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, x, 0));
    }
}

/* vllm-project/vllm 57059: the start barrier is relaxed on both sides. */
BUG(start_barrier_relaxed, "release", 1, 2)
{
    int peer = 1 - d.rank;

    if (d.rank > 1) {
        return;
    }
    ONE(iris_store(d, &x[d.rank], 7, d.rank));
    CHANGE(iris_atomic_store(d, f, 1, peer, wrong ? RLX : REL, SYS));
    while (iris_atomic_load(d, f, d.rank, ACQ, SYS) == 0) {
    }
    OTHER(iris_load(d, &x[peer], peer));
}

/* vllm-project/vllm 8404: the signal is volatile, with no fence. */
BUG(signal_volatile, "acquire", 1, 2)
{
    if (d.rank == 0) {
        send(d, x, f);
    } else if (d.rank == 1) {
        CHANGE_BELOW;
        while (iris_load_volatile(d, f, 1) == 0) {
        }
        iris_fence(wrong ? RLX : ACQ, SYS);
        consume(d, x);
    }
}

/* vllm-project/vllm 2760: ranks write different bytes of a word, which is read
 * as a whole. */
BUG(signal_bytes_of_a_word, "one size", 1, 2)
{
    uint32_t *half = (uint32_t *)(void *)f;

    if (d.rank == 0) {
        ONE(iris_atomic_store(d, half, 1, 1, REL, SYS));
    } else if (d.rank == 1 && wrong) {
        OTHER(iris_atomic_load(d, f, 1, ACQ, SYS));
    } else if (d.rank == 1) {
        iris_atomic_load(d, half, 1, ACQ, SYS);
    }
}

/* vllm-project/vllm 2760: the second of two stages reads what a peer reduced in
 * the first, behind a barrier without a release. */
BUG(second_stage_unordered, "release", 1, 2)
{
    if (d.rank == 0) {
        iris_store(d, &x[8], 3, 1);
        iris_signal_set(d, f, 1, 1);
        wait_for(d, &f[1], 1);
        OTHER(iris_load(d, &x[9], 1));
    } else if (d.rank == 1) {
        wait_for(d, f, 1);
        ONE(iris_store(d, &x[9], iris_load(d, &x[8], 1) + 1, 1));
        CHANGE(iris_atomic_store(d, &f[1], 1, 0, wrong ? RLX : REL, SYS));
    }
}

/* NVIDIA/cutlass 3117: the spin loop ahead of a reduction is relaxed. */
BUG(reduction_spins_relaxed, "acquire", 1, 2)
{
    if (d.rank == 0) {
        produce(d, x);
        iris_atomic_add(d, f, 1, 1, REL, SYS);
    } else if (d.rank == 1) {
        CHANGE_BELOW;
        while (iris_atomic_load(d, f, 1, wrong ? RLX : ACQ, SYS) < 1) {
        }
        consume(d, x);
    }
}

/* NVIDIA/nvshmem 84: one counter for several chunks, which may come in any
 * order: it says how many there are, not which. */
BUG(chunks_counted_together, NULL, 2, 2)
{
    if (d.rank == 0 && wg.id == 0) {
        be_late(d, &f[2], wrong);
        ONE(iris_store(d, x, 7, 1));
        iris_signal_add(d, f, 1, 1);
    } else if (d.rank == 0) {
        iris_store(d, &x[1], 7, 1);
        iris_signal_add(d, &f[wrong ? 0 : 1], 1, 1);
    } else if (d.rank == 1 && wg.id == 0) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, x, 1));
        iris_atomic_store(d, &f[2], 1, 0, RLX, SYS);
    }
}

/* ROCm/rocm-systems 3339: a lock that is released by a plain store. */
BUG(queue_unlocked_plainly, "atomic access", 1, 2)
{
    if (d.rank > 1) {
        return;
    }
    while (iris_atomic_cas(d, f, 0, 1, 0, ACQ, SYS) != 0) {
    }
    iris_store(d, x, d.rank, 0);
    if (wrong) {
        ONE(iris_store(d, f, 0, 0));
    } else {
        iris_atomic_store(d, f, 0, 0, REL, SYS);
    }
}

/* AMD-AGI/Primus-Turbo 482: one wavefront publishes rows of another, which it
 * has only waited for. */
BUG(tail_published_for_others, "release", 2, 2)
{
    iris_sem_t sem = wrong ? RLX : REL;

    if (d.rank == 0 && wg.id == 1) {
        ONE(iris_store(d, x, 7, 1));
        CHANGE(iris_atomic_store(d, &f[1], 1, 0, sem, AGENT));
    } else if (d.rank == 0) {
        while (iris_atomic_load(d, &f[1], 0, ACQ, AGENT) == 0) {
        }
        iris_signal_set(d, f, 1, 1);
    } else if (d.rank == 1 && wg.id == 0) {
        wait_for(d, f, 1);
        OTHER(iris_load(d, x, 1));
    }
}

/* deepseek-ai/DeepEP 600: an output is filled on one stream, after the stream
 * that writes the result has waited for it. */
HOST_BUG(output_filled_late, "stream order", 1, 2)
{
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    if (a->wrong) {
        CHECK_OK(iris_stream_synchronize(iris, NULL));
    }
    CHECK_OK(iris_memset(iris, x, 255, 256, NULL));
    if (!a->wrong) {
        CHECK_OK(iris_stream_synchronize(iris, NULL));
    }
    CHECK_EQUAL(enqueue(iris, a, STORE_OWN, stream), 0);
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    iris_stream_destroy(iris, stream);
    return 0;
}

#endif /* IRIS_TESTS_CHECK_BUGS_PUBLISHED_H */
