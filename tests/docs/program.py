"""A page as a program: what every rank runs."""

import contextlib
import io
import os
from collections.abc import Sequence

import torch.distributed as dist

import thinwire
from tests.docs.pages import Block


def run_page(rank: int, world: int, blocks: Sequence[Block], folder: str, port: int) -> list[str]:
    """Run a page's blocks one after the other, as ``torchrun`` would start them, in one namespace.

    Returns:
        What each block printed.
    """
    thinwire.shutdown()  # pages form their own process group
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    os.chdir(folder)
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = []
    for block in blocks:
        # As many empty lines as stand above it, so that a traceback names the page's own lines.
        code = compile("\n" * block.line + block.code, block.path, "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, namespace)
        printed.append(out.getvalue())
    left = dist.is_initialized()
    namespace.clear()
    thinwire.shutdown()
    if left and rank == 0 and any("init_process_group" in block.code for block in blocks):
        raise AssertionError(f"{blocks[0].path} leaves its process group without thinwire.shutdown()")
    return printed
