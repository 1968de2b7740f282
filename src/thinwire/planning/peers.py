"""What others would send: the costs of plain DDP's own hooks, for comparison. Ring all-reduces, as Gloo has them."""

from collections.abc import Callable
from math import prod

from thinwire.control.work import Work
from thinwire.exchanges.all_reduce import AllReduce
from thinwire.planning.models import Shapes, buckets

_RANK = 4


def _ring(count: int, itemsize: int, world: int) -> Work:
    traffic = AllReduce().traffic(world, count * itemsize, itemsize)
    return Work(rounds=traffic.rounds, bytes_sent=traffic.bytes_sent, declared=traffic, plain=count, groups=1)


def _each(shapes: Shapes, itemsize: int, world: int) -> Work:
    total = Work()
    for size in buckets(shapes):
        total += _ring(size, itemsize, world)
    return total


def dense(shapes: Shapes, world: int) -> Work:
    """Plain DDP: float32."""
    return _each(shapes, 4, world)


def half(shapes: Shapes, world: int) -> Work:
    """Torch's fp16 hook: half the bytes."""
    return _each(shapes, 2, world)


def power_sgd(shapes: Shapes, world: int) -> Work:
    """PowerSGD of rank 4, batched: one all-reduce for all left factors and small tensors, one for all right factors.

    Its kernels are taken to cost four passes over the gradient; its quality is not compared here.
    """
    left = right = small = 0
    for shape in shapes:
        rows, columns = shape[0], prod(shape[1:])
        rank = min(_RANK, rows, columns)
        if len(shape) < 2 or rank * (rows + columns) >= rows * columns:
            small += prod(shape)
        else:
            left, right = left + rank * rows, right + rank * columns
    whole = sum(prod(shape) for shape in shapes)
    return _ring(left + small, 4, world) + _ring(right, 4, world) + Work(plain=4 * whole)


PEERS: dict[str, Callable[[Shapes, int], Work]] = {"dense": dense, "fp16": half, "PowerSGD-4": power_sgd}
"""All of them by name."""
