"""The command line itself: help is quick, mistakes get one line and status 2, a missing extra says how to get it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thinwire
from thinwire.cli import main

PACKAGE = Path(thinwire.__file__).parent


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == thinwire.__version__


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    for path in (PACKAGE / "cli").glob("[!_]*.py"):
        assert f" {path.stem} " in said


@pytest.mark.parametrize("command", ["doctor", "demo", "bench", "lab"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert f"Usage: thinwire {command}" in capsys.readouterr().out


def test_the_command_line_imports_torch_only_inside_commands() -> None:
    program = (
        "import sys; from thinwire.cli import main\n"
        "assert main(['--help']) == 0 and main(['--version']) == 0 and main(['nonsense']) == 2\n"
        "assert main(['doctor', '--help']) == 0 and main(['demo', '--help']) == 0\n"
        "assert main(['demo', '--ranks=1']) == 2\n"
        "assert {'torch', 'numpy'} & set(sys.modules) == set()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["doctor", "demo"])
def test_kernels_that_do_not_exist_are_a_mistake_too(command: str) -> None:
    program = "import sys; from thinwire.cli import main; sys.exit(main(sys.argv[1:]))"
    environ = {**os.environ, "THINWIRE_KERNELS": "bogus"}
    done = subprocess.run(
        [sys.executable, "-c", program, command], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        "thinwire: unknown kernels 'bogus'; the known ones are avx512, avx2, neon, scalar, triton, reference, "
        "and native for the best\n"
    )


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["docter"], "'docter'; known: doctor, demo"),
        (["--nonsense"], "--nonsense"),
        (["doctor", "--nonsense"], "--nonsense"),
        (["doctor", "7"], "7"),
        (["doctor", "--json=maybe"], "maybe"),
        (["demo", "--ranks", "two"], "two"),
        (["demo", "--ranks"], "--ranks"),
        (["demo", "--density", "7"], "density"),
    ],
)
def test_a_mistake_gets_one_line_and_status_2(
    arguments: list[str], names: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("thinwire: ")
    assert names in said
    assert said.count("\n") == 1
    assert "Traceback" not in said


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=12),
            st.sampled_from(["doctor", "demo", "--json", "--ranks", "--", "-", "--no-json", "--help", "--version=1"]),
        ),
        max_size=5,
    )
)
def test_no_words_at_all_give_a_traceback(words: list[str]) -> None:
    # The last word makes sure that no example is a complete command, which would run.
    status = main([*words, "--not-an-option=1"])
    assert status == 2 or (status == 0 and {"--help", "-h"} & set(words))


@pytest.mark.parametrize("missing", ["cyclopts", "rich"])
def test_without_the_extra_it_says_how_to_get_it(missing: str) -> None:
    # None in sys.modules is Python's own way to make an import fail.
    program = f"import sys; sys.modules['{missing}'] = None; from thinwire.cli import main; sys.exit(main(['doctor']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert missing in done.stderr
    assert "pip install 'thinwire[cli]'" in done.stderr


def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    program = "import sys; from thinwire.cli import main; sys.exit(main(['--version']))"
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run([sys.executable, "-c", program], stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr == b""
