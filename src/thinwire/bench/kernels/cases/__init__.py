"""Every kernel that is measured, by family."""

from thinwire.bench.kernels.case import Case
from thinwire.bench.kernels.cases.coordinates import COORDINATES
from thinwire.bench.kernels.cases.movement import MOVEMENT
from thinwire.bench.kernels.cases.selection import SELECTION
from thinwire.bench.kernels.cases.statistics import STATISTICS
from thinwire.bench.kernels.cases.values import VALUES

__all__ = ["FAMILIES"]

FAMILIES: dict[str, tuple[Case, ...]] = {
    "selection": SELECTION,
    "statistics": STATISTICS,
    "movement": MOVEMENT,
    "coordinates": COORDINATES,
    "values": VALUES,
}
