"""How fast the kernels are, beside torch and beside what the memory allows.

How it measures. Every contestant of a case (each implementation, the torch expression, each of them with every number
of threads asked for, and the yardsticks) takes its turn in every round, so that noise hits all alike. Before each turn
a buffer of several times the last-level cache is read through, so that nobody finds data or leaves unwritten lines in a
cache. Buffers are touched before they are timed, and what a kernel changes is restored outside of the timed part. Small
inputs are timed many at a time, each with data of its own. In the warm-up and in the last round results are checked.

How to add a kernel. Write one `Case` into the file of its family under ``cases``; nothing else::

    Case(
        name="scatter_add_",  # of the function in thinwire.kernels
        make=lambda task: (task.gradient(), task.indices(), task.gradient(task.k)),  # its arguments
        torch=lambda out, indices, values: out.index_add_(0, indices, values),  # what a user of torch would write
        moves=lambda out, indices, values: nbytes(indices, values) + 2 * line_bytes(out, indices),
        changes=(0,),  # the arguments that it writes to
    )

``moves`` counts the bytes that any implementation must read plus those it must write (see `moved`).

Unless the case says otherwise the kernel is called with the arguments as they are, its result and what it changed must
equal the reference's, and so must torch's. ``call`` is for kernels that need another call, ``check`` and
``torch_check`` (see `checks`) for results that may differ in some way, ``densities=False`` for
kernels that do not depend on a density. A case of a new family goes into a new file, which `cases` lists.
"""
