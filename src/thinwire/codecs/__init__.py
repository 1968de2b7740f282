"""How do coordinates look on the wire? One file for each answer."""

from thinwire.codecs.bitmap import Bitmap
from thinwire.codecs.delta import Delta
from thinwire.codecs.dense import Dense
from thinwire.codecs.index_value import IndexValue
from thinwire.protocols import Codec
from thinwire.registry import Table

CODECS: Table[Codec] = Table("codec", {"dense": Dense, "index-value": IndexValue, "bitmap": Bitmap, "delta": Delta})

BY_NUMBER: dict[int, Codec] = {part.number: part() for part in CODECS.values()}
"""The codec of each number in the wire format."""

__all__ = ["BY_NUMBER", "CODECS", "Bitmap", "Delta", "Dense", "IndexValue"]
