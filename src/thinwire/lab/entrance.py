"""The way into namespaces: as root, or in a user namespace; and the start of a lab's keeper in them."""

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from thinwire.lab.errors import LabMissing

_APART = ["--pid", "--fork", "--kill-child", "--mount-proc", "--net"]
_TOOLS = {"ip": "iproute2", "tc": "iproute2", "bridge": "iproute2", "unshare": "util-linux"}
_BOOT = "import sys; sys.path.append(sys.argv[1]); from thinwire.lab.keeper import main; main(sys.argv[2:])"
MARK = "thinwire-lab-keeper"


def search_path() -> str:
    """Where commands are looked for: network tools lie where only root's PATH leads on some systems."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def missing() -> str:
    """Why there can be no lab here, in a sentence that says what to do; empty where there can."""
    if sys.platform != "linux":
        return "the lab needs Linux's network namespaces; use plain loopback here (thinwire.lab.ranks)"
    for tool, package in _TOOLS.items():
        if shutil.which(tool, path=search_path()) is None:
            return f"the lab needs {tool}: install the package {package} (in a checkout as root: make lab)"
    problem = _problem()
    if problem:
        return (
            f"the lab may not make network namespaces here ({problem}): run as root, or allow unprivileged user "
            f"namespaces; until then use plain loopback (thinwire.lab.ranks)"
        )
    return ""


def words() -> list[str]:
    """The command that opens fresh namespaces and runs what stands behind it in them.

    Raises:
        LabMissing: There can be no lab here.
    """
    why = missing()
    if why:
        raise LabMissing(why)
    return _unshare()


def spawn(arguments: list[str], owner: int) -> "subprocess.Popen[bytes]":
    """Start a keeper.

    Args:
        arguments: Of its ``main``, without the file descriptor.
        owner: The file descriptor that tells it when its owner ends.

    Raises:
        LabMissing: There can be no lab here.
    """
    folder = str(Path(__file__).resolve().parents[2])
    return subprocess.Popen(
        [*words(), sys.executable, "-P", "-c", _BOOT, folder, MARK, identity(os.getpid()), *arguments, str(owner)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PATH": search_path()},
        pass_fds=[owner],
        start_new_session=True,  # Ctrl-C is its owner's business
    )


def identity(pid: int) -> str:
    """A process, told apart from any that has or had the same number: ``number:start``; empty if there is none."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if fields[0] != "Z":
            return f"{pid}:{fields[19]}"
    return ""


def _unshare() -> list[str]:
    tool = shutil.which("unshare", path=search_path()) or "unshare"
    return [tool, *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), *_APART]


@functools.cache
def _problem() -> str:
    done = subprocess.run(
        [*_unshare(), "ip", "link", "add", "port0", "type", "veth", "peer", "name", "eth0"],
        env={**os.environ, "PATH": search_path()},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["unshare failed"])[-1]
