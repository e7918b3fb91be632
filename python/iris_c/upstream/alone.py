# SPDX-License-Identifier: MIT
"""One rank without a launcher.

A program that is started alone has no RANK in its environment, because it may
start its own ranks and would take RANK for that of a launcher. If it asks for a
process group without naming its rank, it becomes rank 0 of 1.
"""

import os
import socket
from typing import Any


def _be_one_rank() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    os.environ.update(
        RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_WORLD_SIZE="1",
        MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
    )


def apply(module: Any) -> None:
    start = module.init_process_group

    def init_process_group(
        backend: Any = None, init_method: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        by_environment = init_method in (None, "env://") and not args
        if by_environment and not {"rank", "store"} & kwargs.keys():
            if "RANK" not in os.environ:
                _be_one_rank()
        return start(backend, init_method, *args, **kwargs)

    module.init_process_group = init_process_group
