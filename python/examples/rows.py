# SPDX-License-Identifier: MIT
"""Every rank writes its row into the matrix of every peer.

Starts four ranks by itself, or is one rank of torchrun, mpirun or
"iris run".
"""

import os

import iris_c


def main(rank=0):
    ctx = iris_c.iris(heap_size=1 << 20)
    me, ranks = ctx.get_rank(), ctx.get_num_ranks()

    rows = ctx.zeros(ranks, 8)
    for peer in range(ranks):
        ctx.as_remote(rows, peer)[me] = me + 1
    ctx.barrier()

    found = rows.sum(1).tolist()
    assert found == [8.0 * (peer + 1) for peer in range(ranks)], found
    ctx.info(f"{ranks} rows have come")
    return found


if __name__ == "__main__":
    launched = ("IRIS_RANK", "RANK", "OMPI_COMM_WORLD_RANK")
    if any(name in os.environ for name in launched):
        main()
    else:
        iris_c.spawn(main, 4)
