"""Values as bytes, and back."""

from thinwire.bench.kernels.case import Case

VALUES: tuple[Case, ...] = ()
