"""All mutants, and the list of them in tests/README.md."""

from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.of_bench import OF_BENCH
from tests.mutants.of_control import OF_CONTROL
from tests.mutants.of_exchanges import OF_EXCHANGES
from tests.mutants.of_kernels import OF_KERNELS
from tests.mutants.of_lab import OF_LAB
from tests.mutants.of_ledger import OF_LEDGER
from tests.mutants.of_owners import OF_OWNERS
from tests.mutants.of_selectors import OF_SELECTORS
from tests.mutants.of_steps import OF_STEPS
from tests.mutants.of_torch import OF_TORCH
from tests.mutants.of_training import OF_TRAINING
from tests.mutants.of_wire import OF_WIRE

README = ROOT / "tests" / "README.md"
BEGIN, END = "<!-- mutants: begin -->\n", "<!-- mutants: end -->\n"

CHAPTERS: dict[str, tuple[Mutant, ...]] = {
    "Debts, selection, sums": OF_LEDGER,
    "Exchanges and leaders": OF_EXCHANGES,
    "Selectors and leaders": OF_SELECTORS,
    "Bytes from peers": OF_WIRE,
    "Compiled kernels": OF_KERNELS,
    "Sums on their way": OF_OWNERS,
    "Agreement and failure": OF_STEPS,
    "DDP, checkpoints, life": OF_TORCH,
    "Training runs": OF_TRAINING,
    "Emulated hosts": OF_LAB,
    "Choosing a plan": OF_CONTROL,
    "Measurements": OF_BENCH,
}
MUTANTS = tuple(mutant for chapter in CHAPTERS.values() for mutant in chapter)


def table() -> str:
    """The list for the README."""
    lines = [BEGIN]
    for title, mutants in CHAPTERS.items():
        lines += [f"\n### {title}\n\n", "| mutant | the safeguard that is taken out | killed by |\n|---|---|---|\n"]
        for mutant in mutants:
            tests = "<br>".join(f"`{test.removeprefix('tests/').replace('|', ' ')}`" for test in mutant.tests)
            lines.append(f"| `{mutant.name}` | {mutant.safeguard} (`{mutant.file}`) | {tests} |\n")
    return "".join([*lines, "\n", END])


def renewed(text: str) -> str:
    """The README's text with the list as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + table() + after


def write_readme() -> None:
    """Renew the list in the README."""
    README.write_text(renewed(README.read_text()))
