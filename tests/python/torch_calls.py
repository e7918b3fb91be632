# SPDX-License-Identifier: MIT
"""Every call of torch.distributed with this backend and with gloo, by torchrun.

A call's result must be gloo's. Where gloo has none, or a wrong one, `wanted`
computes it."""

import datetime
import functools

import torch
import torch.distributed as dist

import iris_c.torch_backend

CALLS = {}
#: A large message, which has more bytes than a rank's ring of slots.
LARGE = 1 << 19


def call(function):
    """Adds a call whose result must be gloo's."""
    CALLS[function.__name__] = (function, None)
    return function


def wanted(result):
    """Adds a call with the right result."""

    def add(function):
        CALLS[function.__name__] = (function, result)
        return function

    return add


def values(*shape, dtype=torch.float32, rank=None):
    """Numbers of a rank."""
    rank = dist.get_rank() if rank is None else rank
    generator = torch.Generator().manual_seed(7 + rank)
    found = torch.randint(-4, 5, shape, generator=generator)
    return (found.abs() if dtype == torch.uint8 else found).to(dtype)


def size():
    return dist.get_world_size()


def others():
    return [r for r in range(size()) if r != dist.get_rank()]


def rows(*shape):
    return [torch.zeros(*shape) for _ in range(size())]


def whole(*shape, dtype=torch.float32):
    """The numbers of all ranks."""
    return [values(*shape, dtype=dtype, rank=rank) for rank in range(size())]


REDUCTIONS = {
    "SUM": torch.add, "PRODUCT": torch.mul, "MIN": torch.minimum,
    "MAX": torch.maximum, "BAND": torch.bitwise_and, "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}


def cases_of_reductions():
    for dtype in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32,
        torch.int64, torch.float16, torch.bfloat16, torch.float32,
        torch.float64, torch.complex64,
    ):
        for name in REDUCTIONS:
            if name == "SUM" or not dtype.is_complex:
                if name[0] != "B" or not dtype.is_floating_point:
                    yield dtype, name


@wanted(
    lambda: [
        functools.reduce(REDUCTIONS[name], whole(5, dtype=dtype))
        for dtype, name in cases_of_reductions()
    ]
)
def reductions(group):
    found = []
    for dtype, name in cases_of_reductions():
        x = values(5, dtype=dtype)
        dist.all_reduce(x, getattr(dist.ReduceOp, name), group)
        found.append(x)
    return found


def with_sum_inside():
    x = values(6, 6)
    x[1:3, 2:4] = sum(whole(6, 6))[1:3, 2:4]
    return x


@wanted(with_sum_inside)
def sub_tensor(group):
    x = values(6, 6)
    dist.all_reduce(x[1:3, 2:4], group=group)
    return x


@call
def channels_last(group):
    x = values(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    dist.all_reduce(x, group=group)
    assert x.is_contiguous(memory_format=torch.channels_last)
    return x


@call
def sparse_sum(group):
    x = torch.eye(3).to_sparse() * (dist.get_rank() + 1)
    dist.all_reduce(x, group=group)
    return x.to_dense()


@call
def with_roots(group):
    x, y, last = values(3, 4), values(3), size() - 1
    dist.reduce(x, last, group=group)
    dist.broadcast(y, last, group=group)
    z = torch.zeros(3)
    parts = [values(3) * i for i in range(size())]
    dist.scatter(z, parts if dist.get_rank() == 1 else None, 1, group)
    all_of = rows(3) if dist.get_rank() == 0 else None
    dist.gather(values(3), all_of, group=group)
    return [x if dist.get_rank() == last else None, y, z, all_of]


@wanted(lambda: (torch.cat(whole(3, 2)), whole(3)))
def gathers(group):
    found = torch.zeros(size() * 3, 2)
    dist.all_gather_into_tensor(found, values(3, 2), group)
    parts = rows(3)
    dist.all_gather(parts, values(3), group)
    return found, parts


@wanted(lambda: [[values(2, rank=r), values(1, rank=r)] for r in range(size())])
def gathers_of_lists(group):
    lists = [[torch.zeros(2), torch.zeros(1)] for _ in range(size())]
    dist.all_gather_coalesced(lists, [values(2), values(1)], group)
    return lists


def result_of_scattered_sums():
    mine = slice(3 * dist.get_rank(), 3 * dist.get_rank() + 3)
    all_of = whole(3 * size())
    return (
        sum(all_of)[mine],
        functools.reduce(torch.maximum, all_of)[mine],
        sum(whole(dist.get_rank() + 1)),
    )


@wanted(result_of_scattered_sums)
def scattered_sums(group):
    found, most = torch.zeros(3), torch.zeros(3)
    dist.reduce_scatter_tensor(found, values(3 * size()), group=group)
    maximum = dist.ReduceOp.MAX
    dist.reduce_scatter_tensor(most, values(3 * size()), maximum, group)
    uneven = torch.zeros(dist.get_rank() + 1)
    parts = [values(r + 1) for r in range(size())]
    dist.reduce_scatter(uneven, parts, group=group)
    return found, most, uneven


def result_of_exchanges():
    me, n = dist.get_rank(), size()
    first, count = me * (me + 1) // 2, n * (n + 1) // 2
    split = [one[first : first + me + 1] for one in whole(count)]
    return (
        [one * me for one in whole(2)],
        torch.cat([one[2 * me : 2 * me + 2] for one in whole(n * 2, 3)]),
        torch.cat(split),
    )


@wanted(result_of_exchanges)
def exchanges(group):
    me, n = dist.get_rank(), size()
    parts, given = rows(2), [values(2) * i for i in range(n)]
    dist.all_to_all(parts, given, group=group)
    single = torch.zeros(n * 2, 3)
    dist.all_to_all_single(single, values(n * 2, 3), group=group)
    split = torch.zeros(n * (me + 1))
    sizes = [r + 1 for r in range(n)]
    dist.all_to_all_single(
        split, values(sum(sizes)), [me + 1] * n, sizes, group=group
    )
    return parts, single, split


@call
def objects(group):
    me, n = dist.get_rank(), size()
    all_of, some = [None] * n, [None] * n if me == 0 else None
    dist.all_gather_object(all_of, {"rank": me}, group)
    dist.gather_object({"rank": me}, some, group=group)
    sent, own = [me, "x"], [None]
    dist.broadcast_object_list(sent, 0, group)
    dist.scatter_object_list(own, list(range(n)), group=group)
    return all_of, some, sent, own


def result_of_overlaps():
    """Of four calls whose output is a part of the input, or the other way."""
    n, me = size(), dist.get_rank()
    total, all_of = sum(whole(2 * n)), whole(2 * n)
    mine = slice(2 * me, 2 * me + 2)
    return [
        total[mine], total[mine],
        torch.cat([one[2 * (r == 0) :][:2] for r, one in enumerate(all_of)]),
        torch.cat([one[mine] for one in all_of]),
    ]


@wanted(result_of_overlaps)
def overlaps(group):
    found = []
    for at in 0, 1:
        x = values(2 * size())
        dist.reduce_scatter_tensor(x[at : at + 2], x, group=group)
        found.append(x[at : at + 2])
    x = values(2 * size())
    at = 2 * (dist.get_rank() == 0)
    dist.all_gather_into_tensor(x, x[at : at + 2], group)
    y = values(2 * size())
    dist.all_to_all_single(y, y, group=group)
    return [*found, x, y]


def bits(*numbers):
    return torch.tensor(numbers).view(torch.int32)


@wanted(lambda: [bits(1e-40, 1e-40, 1e-40) * size()] * 2)
def subnormal_numbers_on_a_rank_that_flushes_them(group):
    """All ranks get the same bits, and the rank keeps its setting."""
    x, y = torch.full((3,), 1e-40), torch.zeros(3 * size())
    whole = torch.full((3 * size(),), 1e-40)
    flushes = dist.get_rank() == 0 and torch.set_flush_denormal(True)
    dist.all_reduce(x, group=group)
    y = torch.zeros(3)
    dist.reduce_scatter_tensor(y, whole, group=group)
    if flushes:
        assert (torch.tensor([1e-38]) * 0.01).view(torch.int32).item() == 0
        torch.set_flush_denormal(False)
    return [x.view(torch.int32), y.view(torch.int32)]


def several_of(group, **options):
    """A batch of collectives of one kind each."""
    def batch():
        return dist.distributed_c10d._coalescing_manager(
            group=group, device=torch.device("cpu"), **options
        )
    gathered = [torch.zeros(3 * size()), torch.zeros(2 * size())]
    with batch() as first:
        for x, count in zip(gathered, (3, 2)):
            dist.all_gather_into_tensor(x, values(count), group)
    scattered = [torch.zeros(3), torch.zeros(2)]
    with batch() as second:
        for x, count in zip(scattered, (3, 2)):
            dist.reduce_scatter_tensor(x, values(count * size()), group=group)
    summed = [values(3), values(2)]
    with batch() as third:
        for x in summed:
            dist.all_reduce(x, group=group)
    if options:
        for work in (first, second, third):
            work.wait()
    return gathered + scattered + summed


def result_of_several():
    me = dist.get_rank()
    return [
        *(torch.cat(whole(count)) for count in (3, 2)),
        *(sum(whole(c * size()))[c * me : c * (me + 1)] for c in (3, 2)),
        *(sum(whole(count)) for count in (3, 2)),
    ]


@wanted(result_of_several)
def coalesced(group):
    return several_of(group)


@wanted(result_of_several)
def coalesced_async(group):
    return several_of(group, async_ops=True)


@wanted(lambda: [torch.full((LARGE,), float(r)) for r in others()])
def batch_of_messages(group):
    me = dist.get_rank()
    came = {peer: torch.zeros(LARGE) for peer in others()}
    given = torch.full((LARGE,), float(me))
    ops = [dist.P2POp(dist.irecv, came[r], r, group) for r in others()]
    ops += [dist.P2POp(dist.isend, given, r, group) for r in others()]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return list(came.values())


@call
def messages_in_a_circle(group):
    me, n = dist.get_rank(), size()
    came = torch.zeros(LARGE)
    sent = dist.isend(torch.full((LARGE,), float(me)), (me + 1) % n, group)
    dist.recv(came, (me - 1) % n, group)
    sent.wait()
    return came


@call
def messages_beside_collectives(group):
    me, first, second = dist.get_rank(), torch.zeros(LARGE), torch.zeros(LARGE)
    work = None
    if me == 0:
        work = [dist.irecv(first, 1, group), dist.isend(first + 1, 1, group)]
    dist.barrier(group)
    if me == 1:
        dist.send(torch.ones(LARGE), 0, group)
    x = values(3)
    dist.all_reduce(x, group=group)
    if me == 1:
        dist.recv(second, 0, group)
    for one in work or []:
        one.wait()
    return x, first if me == 0 else None, second[:1].numel()


@call
def messages_from_any_rank(group):
    me, found = dist.get_rank(), []
    if me == 0:
        for _ in others():
            x = torch.zeros(2)
            source = dist.recv(x, group=group, tag=3)
            found.append((source, x.tolist()))
        x = torch.zeros(2)
        dist.recv(x, 1, group, tag=1)
        found.append((1, x.tolist()))
        return sorted(found)
    early = None
    if me == 1:
        early = dist.isend(torch.full((2,), 50.0), 0, group, tag=1)
    dist.send(torch.full((2,), float(me)), 0, group, tag=3)
    if early is not None:
        early.wait()
    return found


@call
def futures(group):
    x = values(3)
    work = dist.all_reduce(x, group=group, async_op=True)
    work.wait()
    then = work.get_future().then(lambda future: future.value()[0] * 2)
    came = torch.zeros(3)
    if dist.get_rank() == 0:
        dist.isend(x, 1, group).wait()
    elif dist.get_rank() == 1:
        work = dist.irecv(came, 0, group)
        work.wait()
    return x, then.wait(), came, work.is_completed()


@wanted(lambda: None)
def barriers(group):
    dist.barrier(group)
    limit = datetime.timedelta(seconds=60)
    try:
        dist.monitored_barrier(group)
        dist.monitored_barrier(group, limit, wait_all_ranks=True)
    except (ValueError, RuntimeError) as error:  # Older versions let only gloo have it.
        assert "GLOO" in str(error), error


@wanted(lambda: torch.zeros(0, 3))
def no_elements(group):
    none, out = torch.zeros(0, 3), torch.zeros(0, 3)
    dist.all_reduce(none, group=group)
    dist.broadcast(none, 0, group)
    dist.all_gather_into_tensor(out, none, group)
    dist.reduce_scatter_tensor(out, none, group=group)
    dist.all_to_all_single(out, none, group=group)
    dist.all_gather(rows(0), torch.zeros(0), group)
    dist.all_to_all(rows(0), rows(0), group=group)
    if dist.get_rank() == 0:
        dist.send(none, 1, group)
    elif dist.get_rank() == 1:
        dist.recv(none, 0, group)
    return none


@call
def smaller_groups(group):
    ranks, me = [0, size() - 1], dist.get_rank()
    ends = dist.new_group(ranks, backend=dist.get_backend(group))
    x, y = torch.ones(2) * me, torch.ones(1)
    if me in ranks:
        dist.broadcast(x, size() - 1, ends)
        dist.reduce(y, size() - 1, group=ends)
        if me == 0:
            dist.send(x + 3, size() - 1, ends)
        else:
            dist.recv(x, 0, ends)
    # Older versions split no process group in Python.
    kind = iris_c.torch_backend.IrisProcessGroup
    if not isinstance(dist.group.WORLD, kind):
        halves = [list(range(size() // 2)), list(range(size() // 2, size()))]
        half = dist.split_group(group, halves)
        dist.all_reduce(x, group=half)
    return x, y if me == size() - 1 else None


@call
def names(group):
    if hasattr(dist.ProcessGroup, "group_name"):
        assert isinstance(group.group_name, str)
    return group.rank(), group.size(), dist.get_group_rank(group, 1)


def same(found, expected):
    if isinstance(expected, torch.Tensor):
        return found.dtype == expected.dtype and torch.equal(found, expected)
    if isinstance(expected, (list, tuple)):
        pairs = zip(found, expected)
        return len(found) == len(expected) and all(same(*p) for p in pairs)
    return found == expected


def refused():
    """What this backend does not have, and tensors that do not fit, raise an error
    that names it. A rank finds these by itself, so its peers need not call."""
    bad, me, n = torch.zeros(2, dtype=torch.float64), dist.get_rank(), size()
    few = [torch.zeros(2) for _ in range(n)]
    uneven = [torch.zeros(r + 1) for r in range(n)]
    world = dist.group.WORLD
    gather = dist.GatherOptions()
    gather.rootRank = me
    scatter = dist.ScatterOptions()
    scatter.rootRank = me
    for function, kind, text in (
        (
            lambda: dist.all_to_all_single(
                torch.zeros(n + 1, n), torch.zeros(n + 1, n)
            ),
            ValueError, "the whole tensor",
        ),
        (
            lambda: dist.all_to_all_single(
                torch.zeros(2 * n), torch.zeros(2 * n), [1] * n, [1] * n
            ),
            ValueError, "the whole tensor",
        ),
        (
            lambda: world.gather([few], [torch.zeros(3)], gather).wait(),
            ValueError, "gather: a part",
        ),
        (
            lambda: world.scatter([torch.zeros(3)], [uneven], scatter).wait(),
            ValueError, "scatter: a part",
        ),
        (
            lambda: dist.reduce_scatter(torch.zeros(me + 2), uneven),
            ValueError, "reduce_scatter: a part",
        ),
        (
            lambda: world.allgather_into_tensor_coalesced(
                [torch.zeros(n)], [torch.zeros(1)] * 2
            ).wait(),
            (ValueError, RuntimeError), "",
        ),
        (lambda: dist.all_reduce(bad.long(), dist.ReduceOp.AVG), ValueError, "avg"),
        (
            lambda: dist.all_gather_into_tensor(torch.zeros(2 * size()), bad),
            (ValueError, RuntimeError), "",
        ),
        (
            lambda: dist.all_reduce(
                torch.eye(2).to_sparse(), dist.ReduceOp.MAX
            ),
            NotImplementedError, "sparse",
        ),
        (
            lambda: iris_c.torch_backend.IrisProcessGroup.set_timeout(
                None, datetime.timedelta(1)
            ),
            NotImplementedError, "set_timeout",
        ),
    ):
        try:
            function()
        except kind as error:
            assert text in str(error), error
        else:
            raise SystemExit(f"not refused: {text}")
    try:  # All ranks find this after the call.
        world.allgather([[one.long() for one in few]], [few[0]]).wait()
    except (TypeError, RuntimeError) as error:
        assert "dtype" in str(error) or "type" in str(error), error
    else:
        raise SystemExit("not refused: another dtype")


def run():
    limit = datetime.timedelta(seconds=120)
    dist.init_process_group("iris", timeout=limit)
    reference = dist.new_group(backend="gloo", timeout=limit)
    failed = 0
    for name, (function, result) in CALLS.items():
        expected = function(reference) if result is None else result()
        found = function(dist.group.WORLD)
        if not same(found, expected):
            failed += 1
            print(f"FAILED: {name}: {found}, and not {expected}", flush=True)
    refused()
    dist.destroy_process_group()
    if failed:
        raise SystemExit(1)
    print(f"passed: {len(CALLS)} calls", flush=True)


if __name__ == "__main__":
    run()
