"""The kernels in plain torch and numpy: what every other implementation must equal, bit for bit."""

from thinwire.kernels.reference.coordinates import CoordinateKernels
from thinwire.kernels.reference.movement import MovementKernels
from thinwire.kernels.reference.selection import SelectionKernels
from thinwire.kernels.reference.statistics import StatisticsKernels
from thinwire.kernels.reference.values import ValueKernels

__all__ = ["Reference"]


class Reference(StatisticsKernels, SelectionKernels, MovementKernels, CoordinateKernels, ValueKernels):
    """Every kernel, slowly, everywhere. The other implementations inherit from it what they cannot do faster."""
