"""A mutant: thinwire with one of its safeguards taken out, by one exact change of text in one file."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class DoesNotApply(Exception):
    """The text that a mutant replaces is not there exactly once."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """What is changed, and which tests must then fail.

    Attributes:
        name: For ``--only`` and for tables.
        safeguard: What is taken out or spoiled, in words.
        file: Below ``src/thinwire``.
        old: The exact text, once in the file.
        new: What takes its place.
        tests: Node ids. Every one of them must fail.
        also: Names of exceptions that count as a failure here beside assertions and thinwire's own: what the
            safeguard is there to forestall.
    """

    name: str
    safeguard: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    also: tuple[str, ...] = ()

    def changed(self, text: str) -> str:
        """The file's text with the change.

        Raises:
            DoesNotApply: The old text is not in it, or more than once.
        """
        count = text.count(self.old)
        if count != 1:
            raise DoesNotApply(
                f"this mutant no longer applies: {self.name}: its old text is {count} times in {self.file} instead of "
                f"once; write down the text that the safeguard has now"
            )
        return text.replace(self.old, self.new)

    def apply(self, src: Path) -> None:
        """Change a copy of ``src``.

        Raises:
            DoesNotApply: As `changed`.
        """
        path = src / "thinwire" / self.file
        path.write_text(self.changed(path.read_text()))
