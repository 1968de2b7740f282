"""`thinwire doctor`: what this machine has, and what each of it means for those who want to use thinwire here."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from json import dumps
from pathlib import Path


class State(StrEnum):
    """What a row says about its part."""

    OK = "ok"
    MISSING = "missing"
    INFO = "info"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One thing that was looked at.

    Attributes:
        about: The heading it belongs under.
        name: What was looked at.
        state: Whether it is there; ``info`` where nothing depends on it.
        found: What was found, or why it cannot be used.
        meaning: What follows for the user.
        needed: Whether thinwire cannot be used without it.
    """

    about: str
    name: str
    state: State
    found: str
    meaning: str
    needed: bool = False

    @property
    def broken(self) -> bool:
        """Whether this alone keeps thinwire from working."""
        return self.needed and self.state is State.MISSING


def doctor(*, json: bool = False) -> int:
    """Look at this machine and say what thinwire can do on it.

    Nothing is changed: network tools are tried in a throw-away network namespace that ends with the trial.

    Args:
        json: Print one JSON object instead of tables.

    Returns:
        The exit status: 0, or 1 if something is missing that thinwire cannot work without.
    """
    rows = list(examine())
    broken = [row for row in rows if row.broken]
    if json:
        print(dumps({"usable": not broken, "rows": [asdict(row) for row in rows]}, indent=2))
    else:
        _print(rows, broken)
    return 1 if broken else 0


def examine() -> Iterator[Row]:
    """Look at everything, one thing after the other.

    Returns:
        The rows, in the order in which they are to be shown.
    """
    for look in (_versions, _kernels, _backends, _machine, _network, _extras):
        yield from look()


def _print(rows: list[Row], broken: list[Row]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    colours = {State.OK: "green", State.MISSING: "yellow", State.INFO: "dim"}
    table = Table("", "", "found", "what it means", box=SIMPLE_HEAD)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    table.columns[2].overflow = table.columns[3].overflow = "fold"
    for about in dict.fromkeys(row.about for row in rows):
        table.add_section()
        table.add_row(f"[bold]{about}[/]")
        for row in rows:
            if row.about == about:
                colour = "bold red" if row.broken else colours[row.state]
                table.add_row(
                    "  " + escape(row.name), f"[{colour}]{row.state}[/]", escape(row.found), escape(row.meaning)
                )
    Console().print(table)
    if broken:
        print(f"thinwire cannot work here: {', '.join(row.name for row in broken)} missing")
    else:
        print("everything that thinwire needs is here")


# Versions --------------------------------------------------------------------------------------------------------


def _versions() -> Iterator[Row]:
    about = "versions"
    meaning = f"{platform.python_implementation()} on {platform.system()} {platform.machine()}"
    yield Row(about=about, name="python", state=State.OK, found=platform.python_version(), meaning=meaning)
    try:
        found = metadata.version("thinwire")
    except metadata.PackageNotFoundError:
        meaning = "a bare source tree; install it to get its commands, its kernels and the checks of what it needs"
        yield Row(about=about, name="thinwire", state=State.INFO, found="not installed", meaning=meaning)
        return
    yield Row(about=about, name="thinwire", state=State.OK, found=found, meaning="")
    for name, minimum in _requirements(""):
        found = _version_of(name)
        enough = bool(found) and _as_numbers(found) >= _as_numbers(minimum)
        yield Row(
            about=about,
            name=name,
            state=State.OK if enough else State.MISSING,
            found=found or "not installed",
            meaning=f"{minimum} or newer is needed" if minimum else "any version will do",
            needed=True,
        )


def _requirements(extra: str) -> list[tuple[str, str]]:
    """What an extra (or, for "", the package itself) asks for: names and lowest versions."""
    found = []
    for line in metadata.requires("thinwire") or []:
        demand, _, condition = line.partition(";")
        wanted = re.search(r"extra\s*==\s*[\"']([\w-]+)[\"']", condition)
        name = re.match(r"[\w.-]+", demand.strip())
        if name and name.group() != "thinwire" and (wanted.group(1) if wanted else "") == extra:
            minimum = re.search(r">=\s*([\w.]+)", demand)
            found.append((name.group(), minimum.group(1) if minimum else ""))
    return found


def _version_of(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _as_numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version; what follows them (rc1, +cpu) does not count."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in numbers.group().split(".")) if numbers else ()


# Kernels ---------------------------------------------------------------------------------------------------------

_COMPILED = "compiled inner loops for tensors in main memory"
_KERNELS = {
    "triton": "for tensors on a GPU; checked without one, and not yet run on one",
    "reference": "plain torch and numpy; runs everywhere, several times slower than compiled loops",
}


def _kernels() -> Iterator[Row]:
    from thinwire import kernels

    for name, why_not in kernels.available().items():
        there = why_not == "yes"
        meaning = _KERNELS.get(name, _COMPILED)
        if not there and meaning == _COMPILED:
            meaning = f"reinstall thinwire where there is a C++20 compiler to get {meaning}"
        yield Row(
            about="kernels",
            name=name,
            state=State.OK if there else State.MISSING,
            found=("active" if name == kernels.active() else "available") if there else why_not,
            meaning=meaning,
        )
    forced = os.environ.get(kernels.ENVIRONMENT)
    if forced:
        meaning = "this environment variable decides which kernels are used"
        yield Row(about="kernels", name=kernels.ENVIRONMENT, state=State.INFO, found=forced, meaning=meaning)


# Distributed backends --------------------------------------------------------------------------------------------


def _backends() -> Iterator[Row]:
    import torch.distributed as dist

    about = "distributed backends"
    if not dist.is_available() or not dist.is_gloo_available():
        meaning = "thinwire needs a build of torch with it"
        yield Row(
            about=about, name="gloo", state=State.MISSING, found="not in this torch", meaning=meaning, needed=True
        )
    else:
        yield Row(about=about, name="gloo", state=State.OK, found="in this torch", meaning="for training on CPUs")
        yield _trial_group()
    others = {
        "nccl": (dist.is_nccl_available, "for GPUs; thinwire was never run on it"),
        "mpi": (dist.is_mpi_available, "thinwire does not use it"),
        "ucc": (dist.is_ucc_available, "thinwire does not use it"),
    }
    for name, (there, meaning) in others.items():
        found = "in this torch" if dist.is_available() and there() else "not in this torch"
        yield Row(about=about, name=name, state=State.INFO, found=found, meaning=meaning)


def _trial_group() -> Row:
    """In a process of its own: a backend that cannot find its interface may end the process it is in."""
    program = "from thinwire.cli.doctor import form_group; form_group()"
    problem = _problem([sys.executable, "-W", "ignore", "-c", program], seconds=120.0)
    return Row(
        about="distributed backends",
        name="gloo, one rank",
        state=State.MISSING if problem else State.OK,
        found=problem or "formed a group and summed",
        meaning=(
            "ranks cannot meet here; GLOO_SOCKET_IFNAME names the network interface to use"
            if problem
            else "torch finds a network interface to use"
        ),
        needed=True,
    )


def form_group() -> None:
    """Form a process group of one rank on Gloo, use it, and leave it.

    Raises:
        RuntimeError: The group does not form, or does not add up.
    """
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    values = torch.ones(4)
    dist.all_reduce(values)
    dist.destroy_process_group()
    if values.tolist() != [1.0] * 4:
        raise RuntimeError(f"the sum over one rank of four ones is {values.tolist()}")


# Processors ------------------------------------------------------------------------------------------------------


def _machine() -> Iterator[Row]:
    import torch

    about = "machine"
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = f"{usable} usable of {os.cpu_count()}"
    meaning = "ranks on one machine share them; give each its part with torch.set_num_threads"
    yield Row(about=about, name="CPUs", state=State.INFO, found=found, meaning=meaning)
    meaning = "compiled kernels are chosen by these"
    yield Row(about=about, name="CPU features", state=State.INFO, found=_cpu_features(), meaning=meaning)
    cards = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    meaning = "thinwire was never run on a GPU" if cards else "training runs on the CPUs"
    yield Row(about=about, name="GPUs", state=State.INFO, found=", ".join(cards) or "none", meaning=meaning)


def _cpu_features() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return "unknown"
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    if flags is None:
        return "unknown"
    return (
        ", ".join(flag for flag in ("avx2", "avx512f") if flag in flags.group(1).split()) or "neither AVX2 nor AVX-512"
    )


# Network emulation -----------------------------------------------------------------------------------------------

_PURPOSE = "to emulate thin links on one machine; training does not need it"
_ENTRANCES = {
    "root": ["unshare", "--net"],
    "unprivileged user namespaces": ["unshare", "--user", "--map-root-user", "--net"],
}
_QDISCS = {
    "htb": (["htb", "default", "1"], "bandwidth"),
    "tbf": (["tbf", "rate", "1mbit", "burst", "32kbit", "latency", "50ms"], "bandwidth"),
    "netem": (["netem", "delay", "1ms"], "delay, jitter and loss"),
}
_NFQUEUE = ["iptables", "-A", "INPUT", "-j", "NFQUEUE", "--queue-num", "0"]
# Runs what it is given only if it is not in the network namespace it is told.
_ELSEWHERE = 'test "$(readlink /proc/self/ns/net)" != "$0" || exit 1; exec "$@"'


def _network() -> Iterator[Row]:
    entrance = next((name for name in _ENTRANCES if not _problem([*_ENTRANCES[name], "true"])), "")
    for name, found, needed in (
        ("rights", entrance, "root, or unprivileged user namespaces,"),
        ("ip", "present" if _has("ip") else "", "the package iproute2"),
        ("tc", "present" if _has("tc") else "", "the package iproute2"),
    ):
        yield Row(
            about="network emulation",
            name=name,
            state=State.OK if found else State.MISSING,
            found=found or "no",
            meaning=_PURPOSE if found else f"{needed} would be needed {_PURPOSE}",
        )
    for name, (words, what) in _QDISCS.items():
        problem = _problem_apart(entrance, ["tc", "qdisc", "add", "dev", "lo", "root", *words])
        yield _row_of_trial(name, problem, f"{what} of emulated links")
    yield _row_of_trial("NFQUEUE", _problem_apart(entrance, _NFQUEUE), "delay, jitter and loss where netem is missing")


def _has(tool: str) -> bool:
    return shutil.which(tool, path=_path()) is not None


def _row_of_trial(name: str, problem: str, meaning: str) -> Row:
    return Row(
        about="network emulation",
        name=name,
        state=State.MISSING if problem else State.OK,
        found=problem or "works",
        meaning=meaning,
    )


def _problem_apart(entrance: str, command: list[str]) -> str:
    """Why a command does not work in a network namespace of its own, which ends with it; empty if it works."""
    if not _has(command[0]):
        return f"{command[0]} was not found"
    if not entrance:
        return "could not be tried without a network namespace"
    here = os.readlink("/proc/self/ns/net")
    return _problem([*_ENTRANCES[entrance], "sh", "-c", _ELSEWHERE, here, *command])


def _problem(command: list[str], seconds: float = 10.0) -> str:
    """Run a command; the last line of its complaint, empty if it has none."""
    environ = {**os.environ, "PATH": _path(), "TORCH_CPP_LOG_LEVEL": "ERROR"}
    try:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:g} s"
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit status {done.returncode}"


def _path() -> str:
    """Where commands are looked for: network tools lie where only root's PATH leads on some systems."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


# Extras ----------------------------------------------------------------------------------------------------------


def _extras() -> Iterator[Row]:
    try:
        known = metadata.metadata("thinwire").get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        return
    for extra in known:
        absent = [name for name, _ in _requirements(extra) if not _version_of(name)]
        yield Row(
            about="extras",
            name=f"thinwire[{extra}]",
            state=State.MISSING if absent else State.OK,
            found=f"{', '.join(absent)} missing" if absent else "installed",
            meaning=_pip_line(extra) if absent else "",
        )


def _pip_line(extra: str) -> str:
    checkout = metadata.distribution("thinwire").read_text("direct_url.json") is not None
    return f"pip install -c constraints.txt -e '.[{extra}]'" if checkout else f"pip install 'thinwire[{extra}]'"
