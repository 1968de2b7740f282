"""The command line. One file for each command, imported only when the command is called, so that help is quick."""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from thinwire.errors import ThinwireError
from thinwire.version import __version__

_COMMANDS = {
    "doctor": "Look at this machine and say what thinwire can do on it.",
    "demo": "Train a small model twice, dense and compressed, and compare.",
    "bench": "Measure thinwire on this machine.",
    "lab": "Run programs on emulated hosts with thin links.",
}
_MISTAKE = 2
_FAILURE = 1
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: What stands behind ``thinwire`` on the command line; None for this process's own.

    Returns:
        The exit status: 0; what the command returned; 2 for a mistake on the command line; 1 for anything else
        that thinwire refused or could not do; 130 after Ctrl-C.
    """
    missing = [name for name in ("cyclopts", "rich") if find_spec(name) is None]
    if missing:
        return _say(
            f"the command line needs {' and '.join(missing)}: write pip install 'thinwire[cli]' "
            f"(in a checkout: pip install -c constraints.txt -e '.[cli]')",
            _FAILURE,
        )
    try:
        status = _run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return status
    except ThinwireError as error:
        # Those that are ValueErrors too refuse what was asked for; the others say what went wrong on the way.
        return _say(str(error), _MISTAKE if isinstance(error, ValueError) else _FAILURE)
    except BrokenPipeError:
        # Whoever read the output has left; what is still buffered must not raise a second time at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILURE
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(arguments: list[str]) -> int:
    from cyclopts import App, CycloptsError

    app = App(
        name="thinwire",
        help="Fast PyTorch data-parallel training over thin, unpredictable networks.",
        help_format="plaintext",
        version=__version__,
        suppress_keyboard_interrupt=False,
    )
    for name, purpose in _COMMANDS.items():
        app.command(f"thinwire.cli.{name}:{name}", name=name, help=purpose)
    command = arguments[0] if arguments else ""
    if command and not command.startswith("-") and command not in _COMMANDS:
        return _say(f"there is no command {command!r}; known: {', '.join(_COMMANDS)}", _MISTAKE)
    try:
        status = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        page = f"thinwire {command} --help" if command in _COMMANDS else "thinwire --help"
        return _say(f"{str(error).strip()} See {page}.", _MISTAKE)
    return status if isinstance(status, int) else 0


def _say(what: str, status: int) -> int:
    print(f"thinwire: {what}", file=sys.stderr)
    return status
