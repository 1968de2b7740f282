"""How sizes, densities and other lists are written on a command line."""

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from thinwire.bench.errors import BenchError

_UNITS = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_LARGEST = 2_000_000_000

T = TypeVar("T")


def words(text: str) -> Iterator[str]:
    """What stands between the commas.

    Args:
        text: The list.
    """
    return (word.strip() for word in text.split(",") if word.strip())


def each(text: str, parse: Callable[[str], T | None], what: str, instead: str) -> tuple[T, ...]:
    """Every word's value, once.

    Args:
        text: The list, with commas.
        parse: A word's value; None for a word that has none.
        what: One value, in words.
        instead: What may be written.

    Raises:
        BenchError: A word has no value, or there is no word.
    """
    found: dict[T, None] = {}
    for word in words(text):
        value = parse(word)
        if value is None:
            raise BenchError(f"{word!r} is not {what}; write {instead}")
        found[value] = None
    if not found:
        raise BenchError(f"{text!r} names not even {what}; write {instead}")
    return tuple(found)


def sizes(text: str) -> tuple[int, ...]:
    """Numbers of elements, such as ``10k,1M``.

    Raises:
        BenchError: It is no such list.
    """
    return each(text, _size, "a size", "a whole number from 1 to 2G, such as 500, 10k or 25M")


def densities(text: str) -> tuple[float, ...]:
    """Parts of a whole, such as ``0.1%,0.01``.

    Raises:
        BenchError: It is no such list.
    """
    return each(text, _density, "a density", "more than 0 and at most 1, such as 0.01 or 1%")


def rate(text: str) -> float:
    """Bits per second of a link, such as ``100M``; 0 for an empty text, which means that it is not known.

    Raises:
        BenchError: It is no rate.
    """
    parts = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([kMG]?)", text)
    if text and (parts is None or float(parts[1]) == 0):
        raise BenchError(f"{text!r} is not a rate; write bits per second, such as 10M, 100M or 2.5G")
    return float(parts[1]) * _UNITS[parts[2]] if parts else 0.0


def _size(word: str) -> int | None:
    parts = re.fullmatch(r"(\d{1,12})([kMG]?)", word)
    value = int(parts[1]) * _UNITS[parts[2]] if parts else 0
    return value if 1 <= value <= _LARGEST else None


def _density(word: str) -> float | None:
    try:
        value = float(word.removesuffix("%")) / (100.0 if word.endswith("%") else 1.0)
    except ValueError:
        return None
    return value if 0.0 < value <= 1.0 else None
