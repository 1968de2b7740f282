"""Small training tasks on real data, and training them by several methods side by side.

The table is plain text, so that a command line can show it without importing torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thinwire.errors import PlanError

if TYPE_CHECKING:
    from thinwire.tasks.task import Task

TASKS: dict[str, tuple[str, str]] = {
    "bytes": ("byte_lm", "Bytes"),
    "fashion": ("fashion", "Fashion"),
    "movielens": ("movielens", "MovieLens"),
    "wide": ("wide", "Wide"),
    "wider": ("wide", "Wider"),
}
"""By name: the module and the class."""


def make_task(name: str, **options: Any) -> "Task":
    """A task by its name.

    Args:
        name: One of `TASKS`.
        **options: The task's own.

    Returns:
        The task. It looks for its data when they are first used.

    Raises:
        PlanError: There is no such task, or it has no such option.
    """
    if name not in TASKS:
        raise PlanError(f"there is no task {name!r}; known: {', '.join(TASKS)}")
    module, kind = TASKS[name]
    try:
        made: Task = getattr(import_module(f"thinwire.tasks.{module}"), kind)(**options)
    except TypeError as error:
        raise PlanError(f"task {name!r} does not take these options: {error}") from error
    return made
