"""`thinwire doctor` on this very machine, and on machines made poorer for real."""

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch

import thinwire
from thinwire import kernels
from thinwire.cli.doctor import Row, State, doctor

Rows = dict[str, dict[str, Any]]

# A user without any rights, in a user namespace in which new ones can be made.
AS_NOBODY = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
# A file system of one's own, in which the folder of network tools is empty.
WITHOUT_TOOLS = [
    "unshare",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    'mount -t tmpfs none /usr/sbin && exec "$@"',
    "sh",
]


def run(*arguments: str, within: Sequence[str] = (), **environ: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from thinwire.cli import main; sys.exit(main(['doctor', *sys.argv[1:]]))"
    return subprocess.run(
        [*within, sys.executable, "-W", "error", "-c", program, *arguments],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def rows_of(done: subprocess.CompletedProcess[str]) -> Rows:
    return {row["name"]: row for row in json.loads(done.stdout)["rows"]}


def can(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def plain() -> subprocess.CompletedProcess[str]:
    return run("--json")


@pytest.fixture(scope="module")
def rows(plain: subprocess.CompletedProcess[str]) -> Rows:
    return rows_of(plain)


def test_this_machine_can_use_thinwire(plain: subprocess.CompletedProcess[str]) -> None:
    assert plain.returncode == 0, plain.stdout + plain.stderr
    assert json.loads(plain.stdout)["usable"] is True
    assert plain.stderr == ""


def test_every_row_is_complete(rows: Rows) -> None:
    for row in rows.values():
        assert set(row) == {"about", "name", "state", "found", "meaning", "needed"}
        assert row["state"] in {"ok", "missing", "info"}
        assert row["found"]
        assert row["meaning"] or row["state"] == "ok"


def test_versions_are_the_real_ones(rows: Rows) -> None:
    assert rows["python"]["found"] == sys.version.split()[0]
    assert rows["thinwire"]["found"] == thinwire.__version__
    assert rows["torch"]["found"] == torch.__version__
    assert rows["numpy"]["found"] == metadata.version("numpy")


def test_kernels_are_the_ones_in_use(rows: Rows) -> None:
    for name, why_not in kernels.available().items():
        assert rows[name]["state"] == ("ok" if why_not == "yes" else "missing")
        assert (rows[name]["found"] == "active") == (name == kernels.active())


def test_backends_are_those_of_torch(rows: Rows) -> None:
    assert rows["gloo"]["state"] == rows["gloo, one rank"]["state"] == "ok"
    assert (rows["nccl"]["found"] == "in this torch") == torch.distributed.is_nccl_available()
    assert {rows[name]["state"] for name in ("nccl", "mpi", "ucc")} == {"info"}


def test_features_are_those_of_the_processor(rows: Rows) -> None:
    capability = torch.backends.cpu.get_cpu_capability()
    if capability in {"AVX2", "AVX512"}:
        assert "avx2" in rows["CPU features"]["found"]
    assert ("avx512f" in rows["CPU features"]["found"]) >= (capability == "AVX512")
    assert rows["CPUs"]["found"].startswith(f"{len(os.sched_getaffinity(0))} usable")


def test_extras_are_those_of_the_package(rows: Rows) -> None:
    for extra in metadata.metadata("thinwire").get_all("Provides-Extra") or []:
        assert rows[f"thinwire[{extra}]"]["about"] == "extras"
    assert rows["thinwire[cli]"]["state"] == "ok"


@pytest.mark.skipif(not Path("/proc/config.gz").exists(), reason="this kernel does not tell how it was built")
def test_traffic_shapers_are_those_of_the_kernel(rows: Rows) -> None:
    if rows["rights"]["state"] == rows["tc"]["state"] == "ok":
        config = gzip.decompress(Path("/proc/config.gz").read_bytes()).decode()
        for name in ("htb", "tbf", "netem"):
            built = re.search(rf"^CONFIG_NET_SCH_{name.upper()}=(\w)$", config, re.MULTILINE)
            if built is None or built.group(1) == "y":  # a module may be built and still not be installed
                assert rows[name]["state"] == ("ok" if built else "missing")


def network() -> list[str]:
    commands = (["ip", "link"], ["ip", "address"], ["ip", "netns"], ["tc", "qdisc"], ["tc", "class", "show"])
    said = [subprocess.run(command, capture_output=True, text=True, check=False).stdout for command in commands]
    return [re.sub(r"(valid|preferred)_lft \w+", "", text) for text in said]


@pytest.mark.skipif(not can("ip", "link"), reason="iproute2 is not installed")
def test_the_network_of_this_machine_is_left_alone() -> None:
    before = network()
    done = run("--json")
    assert network() == before
    assert rows_of(done)["tc"]["state"] == "ok"


@pytest.mark.skipif(not can(*AS_NOBODY, "true"), reason="no unprivileged user can be made up here")
def test_an_unprivileged_user_gets_a_network_from_a_user_namespace(rows: Rows) -> None:
    poorer = rows_of(run("--json", within=AS_NOBODY))
    possible = can(*AS_NOBODY, "unshare", "--user", "--map-root-user", "--net", "true")
    assert poorer["rights"]["found"] == ("unprivileged user namespaces" if possible else "no")
    if possible:
        assert poorer["htb"]["state"] == rows["htb"]["state"]


@pytest.mark.skipif(not can(*WITHOUT_TOOLS, "true"), reason="tools cannot be hidden here")
def test_a_machine_that_lacks_things(rows: Rows) -> None:
    done = run("--json", within=WITHOUT_TOOLS, GLOO_SOCKET_IFNAME="nonexistent0", THINWIRE_KERNELS="reference")
    poorer = rows_of(done)
    assert poorer["reference"]["found"] == "active"
    assert poorer["THINWIRE_KERNELS"]["found"] == "reference"
    for name in ("htb", "tbf", "netem", "NFQUEUE"):
        assert poorer[name]["state"] == "missing"
    # Only the group that cannot form keeps thinwire from working.
    assert done.returncode == 1
    assert [name for name, row in poorer.items() if row["needed"] and row["state"] == "missing"] == ["gloo, one rank"]
    assert "nonexistent0" in poorer["gloo, one rank"]["found"]
    assert "GLOO_SOCKET_IFNAME" in poorer["gloo, one rank"]["meaning"]
    assert "iproute2" in poorer["tc"]["meaning"]


def test_the_table_shows_every_row(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor() == 0
    said = capsys.readouterr().out
    for name in rows:
        assert name in said
    assert said.rstrip().endswith("everything that thinwire needs is here")


def test_no_path_of_this_machine_is_shown(plain: subprocess.CompletedProcess[str]) -> None:
    for path in {str(Path.cwd()), str(Path.home()), sys.prefix, sys.base_prefix, str(Path(thinwire.__file__).parent)}:
        assert path not in plain.stdout


def test_only_what_is_needed_and_missing_breaks() -> None:
    def row(state: State, needed: bool) -> Row:
        return Row(about="a", name="b", state=state, found="c", meaning="d", needed=needed)

    assert row(State.MISSING, True).broken
    assert not row(State.MISSING, False).broken
    assert not row(State.OK, True).broken
    assert not row(State.INFO, True).broken
