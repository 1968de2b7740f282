"""How do coordinates look on the wire? One file for each answer."""

from collections.abc import Iterator, Mapping

from thinwire.codecs.bitmap import Bitmap
from thinwire.codecs.cheapest import Cheapest
from thinwire.codecs.delta import Delta
from thinwire.codecs.dense import Dense
from thinwire.codecs.index_value import IndexValue
from thinwire.protocols import Codec
from thinwire.registry import Table

CODECS: Table[Codec] = Table(
    "codec", {"dense": Dense, "index-value": IndexValue, "bitmap": Bitmap, "delta": Delta, "cheapest": Cheapest}
)


class _ByNumber(Mapping[int, Codec]):
    """Looks into the table each time, so that a codec that was added can be read as well as written."""

    def __getitem__(self, number: int) -> Codec:
        for part in CODECS.values():
            if part.number == number:
                return part()
        raise KeyError(number)

    def __iter__(self) -> Iterator[int]:
        return (part.number for part in CODECS.values())

    def __len__(self) -> int:
        return len(CODECS)


BY_NUMBER = _ByNumber()
"""The codec of each number in the wire format."""

__all__ = ["BY_NUMBER", "CODECS", "Bitmap", "Cheapest", "Delta", "Dense", "IndexValue"]
