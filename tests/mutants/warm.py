"""A warm interpreter: it has imported what takes long and is the same for every mutant, and forks for every run.

The child of a fork does what a new ``python -m pytest`` would do, without the seconds that torch takes to be imported.
The warm interpreter itself never imports thinwire. It has one thread and computes nothing, so that forking it is safe.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tests.mutants.mutant import ROOT

_PRELOADED = ("torch", "torch.distributed", "torch.nn.parallel", "torch._dynamo", "numpy", "pytest", "sortedcontainers")
_LARGEST = 1 << 20


class Warm:
    """The gate's end of it."""

    def __init__(self) -> None:
        """Start the interpreter.

        Without its ``site`` module Python reads no ``.pth`` files, so that an editable install of thinwire does not get
        in the way, here or in the processes of ranks, which inherit the flag.
        """
        packages = dict.fromkeys(sysconfig.get_paths()[kind] for kind in ("purelib", "platlib"))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*packages, str(ROOT)])}
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST)
        self._running: set[int] = set()
        self._over = False
        self._asking = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-m", "tests.mutants.warm", str(theirs.fileno())],
                cwd=ROOT,
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def __enter__(self) -> "Warm":
        """The interpreter lives as long as the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and every run that goes on."""
        with self._asking:
            self._over = True
            for session in list(self._running):
                _kill(session)
        self._requests.close()
        self._process.wait()

    def pytest(
        self, arguments: Sequence[str], *, path: Path, environ: Mapping[str, str], output: IO[Any], limit: float
    ) -> int | None:
        """Run pytest in a fork, a session of its own.

        Args:
            arguments: Its command line.
            path: What goes before everything else on the path of imports, also of the processes it starts.
            environ: What is added to the environment.
            output: Where the output goes.
            limit: Seconds after which it is stopped, with all processes that it started.

        Returns:
            The exit code, negative after a signal; None where it was stopped.
        """
        answers, theirs = socket.socketpair()
        with answers, theirs:
            request = json.dumps({"arguments": list(arguments), "path": str(path), "environ": dict(environ)}).encode()
            assert len(request) < _LARGEST
            lines = answers.makefile()
            with self._asking:
                if self._over:
                    raise RuntimeError("the gate is being closed")
                socket.send_fds(self._requests, [request], [theirs.fileno(), output.fileno()])
                theirs.close()
                session = _number(lines)
                self._running.add(session)
            try:
                answers.settimeout(limit)
                return _number(lines)
            except TimeoutError:
                _kill(session)
                return None
            finally:
                self._running.discard(session)


def _number(lines: IO[str]) -> int:
    if not (line := lines.readline()):
        raise RuntimeError("the warm interpreter is gone, or the run was stopped")
    return int(line)


def _kill(session: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def _requests(channel: socket.socket) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """What is asked for, until the gate is gone."""
    while True:
        request, descriptors, *_ = socket.recv_fds(channel, _LARGEST, 2)
        if not request:
            return
        yield json.loads(request), list(descriptors)


def _serve(channel: socket.socket) -> dict[str, Any] | None:
    """Fork for every request. In the child that is to run pytest, the request; in the server, None at the end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for a run
    for request, (answers, output) in _requests(channel):
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel.close()
            os.setsid()
            if (run := os.fork()) == 0:
                os.close(answers)
                os.dup2(output, 1)
                os.dup2(output, 2)
                os.close(output)
                return request
            with contextlib.suppress(BrokenPipeError):
                os.write(answers, f"{os.getpid()}\n".encode())
                code = os.waitstatus_to_exitcode(os.waitpid(run, 0)[1])
                os.write(answers, f"{code}\n".encode())
            os._exit(0)
        os.close(answers)
        os.close(output)
    return None


def main() -> int:
    """Be the warm interpreter; in its children, be pytest."""
    for name in _PRELOADED:
        importlib.import_module(name)
    gc.freeze()  # what was imported never dies; without this every collection walks all of torch
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    if request is None:
        return 0
    os.environ.update(request["environ"])
    os.environ["PYTHONPATH"] = os.pathsep.join([request["path"], os.environ["PYTHONPATH"]])
    sys.path.insert(0, request["path"])
    sys.argv = ["pytest", *request["arguments"]]
    import pytest

    return int(pytest.main(request["arguments"]))


if __name__ == "__main__":
    sys.exit(main())
