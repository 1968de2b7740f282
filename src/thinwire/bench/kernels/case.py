"""One kernel to be measured, as a declaration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thinwire.bench.kernels.checks import Check, same
from thinwire.bench.kernels.data import Task
from thinwire.kernels import Kernels

Arguments = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel, what it is called with, what stands against it, and what it must move.

    Attributes:
        name: Of the function in `thinwire.kernels`; ``name=...`` and ``call=...`` for another variant of one.
        make: From a task the arguments of one call.
        torch: What a user of torch would write, with the same arguments.
        moves: The bytes that any implementation must read plus those it must write, from the arguments.
        changes: The positions of the arguments that are written to.
        check: Counts what is wrong with a kernel's result.
        torch_check: The same for the torch expression; None for ``check``.
        call: How the kernel is called: implementation and arguments. None for the function called ``name``.
        densities: Whether it depends on the density at all.
        remark: What a reader must know about the comparison.
    """

    name: str
    make: Callable[[Task], Arguments]
    torch: Callable[..., Any]
    moves: Callable[..., int]
    changes: tuple[int, ...] = ()
    check: Check = same
    torch_check: Check | None = None
    call: Callable[..., Any] | None = None
    densities: bool = True
    remark: str = ""

    def kernel(self, kernels: Kernels) -> Callable[..., Any]:
        """The call of one implementation.

        Args:
            kernels: The implementation.

        Returns:
            A function of the arguments.
        """
        call = self.call
        if call is None:
            function: Callable[..., Any] = getattr(kernels, self.name)
            return function
        return lambda *arguments: call(kernels, *arguments)

    def outcome(self, result: Any, arguments: Arguments) -> Any:
        """What is to be checked: the result, and behind it what was changed.

        Args:
            result: What the call returned.
            arguments: As the call left them.

        Returns:
            The result alone where nothing is changed; where something is, a tuple of it and of what was changed.
            Torch's functions return what they changed, which does not count twice.
        """
        changed = tuple(arguments[position] for position in self.changes)
        if not changed:
            return result
        return (None if any(result is tensor for tensor in changed) else result, *changed)
