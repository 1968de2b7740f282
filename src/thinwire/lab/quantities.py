"""Rates, times, sizes and shares, as people write them: ``100mbit``, ``20ms``, ``64kib``, ``1%``."""

import re

from thinwire.lab.errors import LabRefused

_RATES = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_SIZES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "kib": 1024.0, "mib": 1024.0**2}
_SHARES = {"": 1.0, "%": 0.01}


def rate(value: str | float) -> float:
    """Bits per second, from a number of them or from text like ``100mbit``."""
    return _read(value, _RATES, "rate", "100mbit")


def time(value: str | float) -> float:
    """Seconds, from a number of them or from text like ``20ms``."""
    return _read(value, _TIMES, "time", "20ms")


def size(value: str | float) -> float:
    """Bytes, from a number of them or from text like ``64kib``."""
    return _read(value, _SIZES, "size", "64kib")


def share(value: str | float) -> float:
    """A share of 1, from a number or from text like ``1%``."""
    return _read(value, _SHARES, "share", "1%")


def show_rate(value: float | None) -> str:
    """The shortest way to write a rate."""
    return "unlimited" if value is None else _show(value, _RATES)


def show_time(value: float) -> str:
    """The shortest way to write a time."""
    return _show(value, _TIMES)


def show_size(value: float) -> str:
    """The shortest way to write a size."""
    return _show(value, {unit: _SIZES[unit] for unit in ("b", "kib", "mib")})


def _read(value: str | float, units: dict[str, float], what: str, example: str) -> float:
    if not isinstance(value, str):
        return float(value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z%]*)\s*", value.lower())
    if match is None or match[2] not in units:
        known = ", ".join(unit for unit in units if unit)
        raise LabRefused(f"{value!r} is no {what}: write a number with one of {known}, for example {example}")
    return float(match[1]) * units[match[2]]


def _show(value: float, units: dict[str, float]) -> str:
    fitting = [unit for unit, factor in units.items() if value >= factor]
    unit = max(fitting, key=units.__getitem__) if fitting else min(units, key=units.__getitem__)
    return f"{value / units[unit]:.4g}{unit}"
