"""Values on their way out of and into dense tensors."""

from thinwire.bench.kernels.case import Case
from thinwire.bench.kernels.moved import line_bytes, nbytes

MOVEMENT = (
    Case(
        name="scatter_add_",
        make=lambda task: (task.gradient(), task.indices(), task.gradient(task.k)),
        torch=lambda out, indices, values: out.index_add_(0, indices, values),
        moves=lambda out, indices, values: nbytes(indices, values) + 2 * line_bytes(out, indices),
        changes=(0,),
    ),
)
