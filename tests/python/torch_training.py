# SPDX-License-Identifier: MIT
"""Small trainings of each kind that torch distributes, by torchrun: their
losses with this backend are those with gloo, or with NCCL where ranks have GPUs.

A version of torch that lacks a kind leaves it out, and says so. With --times the
program prints how long a step of a larger model takes with each backend."""

import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn

import iris_c.torch_backend

STEPS = 4

#: Of the model. With --times each gradient has some MB.
WIDTH = 1024 if "--times" in sys.argv else 16

#: Where the tensors are.
DEVICE = "cpu" if os.environ.get("IRIS_BACKEND") == "sim" else "cuda"


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, 3 * width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.query(self.norm(x)).chunk(3, -1)
        x = x + torch.softmax(q @ k.transpose(-1, -2) / 4, -1) @ v
        return x + self.down(torch.relu(self.up(x)))


class Model(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.into = nn.Embedding(32, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.out = nn.Linear(width, 32)

    def forward(self, tokens):
        x = self.into(tokens)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def made():
    torch.manual_seed(1)
    return Model(WIDTH)


def trained(model, rank, parts=None, steps=STEPS):
    """The losses of some steps of a model, on this rank's tokens."""
    parts = list(model.parameters()) if parts is None else parts
    # The default on GPUs refuses plain tensors beside those of tensor parallelism.
    optimizer = torch.optim.SGD(parts, lr=0.1, momentum=0.9, foreach=False)
    generator = torch.Generator(DEVICE).manual_seed(rank)
    losses = []
    for _ in range(steps):
        tokens = torch.randint(0, 32, (4, 9), generator=generator)
        guess = model(tokens[:, :-1]).flatten(0, 1)
        loss = nn.functional.cross_entropy(guess, tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses)


def mesh_of(group):
    from torch.distributed.device_mesh import DeviceMesh

    return DeviceMesh.from_group(group, DEVICE)


def ddp(group, steps=STEPS):
    model = nn.parallel.DistributedDataParallel(made(), process_group=group)
    return trained(model, dist.get_rank(), steps=steps)


def ddp_comm_hook(group):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    model = nn.parallel.DistributedDataParallel(made(), process_group=group)
    hook = default_hooks.fp16_compress_hook
    model.register_comm_hook(group, hook)
    return trained(model, dist.get_rank())


def fsdp2(group, steps=20):
    from torch.distributed.fsdp import fully_shard

    model, mesh = made(), mesh_of(group)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return trained(model, dist.get_rank(), steps=steps)


def tensor_parallel(group):
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    model, mesh = made(), mesh_of(group)
    for block in model.blocks:
        plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
        parallelize_module(block, mesh, plan)
    # All ranks have the same tokens.
    return trained(model, 0)


def dtensor(group):
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor import DTensor, distribute_tensor

    mesh = mesh_of(group)
    x = torch.arange(35.0).reshape(7, 5)
    rows = distribute_tensor(x, mesh, [Shard(0)])
    columns = rows.redistribute(mesh, [Shard(1)])
    part = DTensor.from_local(x * dist.get_rank(), mesh, [Partial()])
    found = [
        rows.full_tensor(),
        columns.full_tensor(),
        (rows @ distribute_tensor(x.t(), mesh, [Replicate()])).full_tensor(),
        part.redistribute(mesh, [Shard(0)]).full_tensor(),
        part.full_tensor(),
    ]
    return torch.cat([one.flatten() for one in found])


def functional(group):
    import torch.distributed._functional_collectives as funcol

    x = torch.arange(4.0 * dist.get_world_size()) * (1 + dist.get_rank())
    found = [
        funcol.all_reduce(x, "sum", group),
        funcol.all_gather_tensor(x, 0, group),
        funcol.reduce_scatter_tensor(x, "sum", 0, group),
        funcol.all_to_all_single(x, None, None, group),
    ]
    if hasattr(funcol, "broadcast"):
        found.append(funcol.broadcast(x, 1, group))
    found += funcol.all_reduce_coalesced([x, 2 * x], "max", group)
    found += funcol.all_gather_into_tensor_coalesced([x, 2 * x], group)
    return torch.cat([torch.as_tensor(one).flatten() for one in found])


def compiled(group):
    import torch.distributed._functional_collectives as funcol

    if not hasattr(dist.ProcessGroup, "group_name"):
        raise ImportError("this version compiles no process group in Python")

    @torch.compile(backend="aot_eager", fullgraph=True)
    def program(x):
        return funcol.all_reduce(x * 2, "sum", group) + 1

    return program(torch.arange(5.0) + dist.get_rank())


def checkpoint(group):
    import torch.distributed.checkpoint as saved
    from torch.distributed.fsdp import fully_shard

    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, 0)
    models = [made(), Model()]
    for model in models:
        fully_shard(model, mesh=mesh_of(group))
    state = models[0].state_dict()
    saved.save(state, checkpoint_id=folder[0], process_group=group)
    other = models[1].state_dict()
    saved.load(other, checkpoint_id=folder[0], process_group=group)
    models[1].load_state_dict(other)
    return torch.cat([p.full_tensor().flatten() for p in models[1].parameters()])


KINDS = (
    ddp, ddp_comm_hook, functional, dtensor, fsdp2, tensor_parallel, compiled,
    checkpoint,
)


def milliseconds(kind, group):
    """What each of ten steps takes: twelve steps, less two."""

    def taken(steps):
        dist.barrier()
        begin = time.perf_counter()
        kind(group, steps)
        dist.barrier()
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    taken(2)
    return 100 * (taken(12) - taken(2))


def run_times(reference):
    for kind in ddp, fsdp2:
        times = [milliseconds(kind, reference),
                 milliseconds(kind, dist.group.WORLD)]
        if dist.get_rank() == 0:
            print(f"{kind.__name__}: {times[1]:.2f} ms a step,"
                  f" {dist.get_backend(reference)} {times[0]:.2f} ms", flush=True)


def run():
    rank = int(os.environ["RANK"])
    if DEVICE == "cuda":
        torch.cuda.set_device(rank)
        torch.set_default_device(f"cuda:{rank}")
    dist.init_process_group("iris")
    reference = dist.new_group(backend="gloo" if DEVICE == "cpu" else "nccl")
    if "--times" in sys.argv:
        run_times(reference)
    for kind in [] if "--times" in sys.argv else KINDS:
        try:
            expected = kind(reference)
        except (ImportError, AttributeError) as error:
            if rank == 0:
                print(f"left out: {kind.__name__}: {error}")
            continue
        found = kind(dist.group.WORLD)
        # A compressed sum has few bits, which depend on its order.
        limit = 1e-3 if kind is ddp_comm_hook else 1e-6
        torch.testing.assert_close(
            found.detach(), expected.detach(), rtol=limit, atol=limit,
            msg=lambda text: f"{kind.__name__}: {text}",
        )
        if rank == 0:
            print("passed:", kind.__name__, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    run()
