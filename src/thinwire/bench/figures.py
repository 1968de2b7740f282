"""Numbers for people."""


def size(count: int) -> str:
    """A number of elements, short.

    Args:
        count: How many.
    """
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if count >= unit and count % (unit // 10) == 0:
            return f"{count / unit:g}{name}"
    return str(count)


def duration(nanoseconds: float) -> str:
    """A time with its unit, in three digits.

    Args:
        nanoseconds: The time.
    """
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= unit:
            return (
                f"{nanoseconds / unit:.3g} {name}" if nanoseconds < 999.5 * unit else f"{nanoseconds / unit:.0f} {name}"
            )
    return f"{nanoseconds:.0f} ns"


def amount(count: float) -> str:
    """Bytes, or bits per second, with the letter of their thousands, in three digits.

    Args:
        count: How many.
    """
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= unit:
            return f"{count / unit:.3g} {name}" if count < 999.5 * unit else f"{count / unit:.0f} {name}"
    return f"{count:.3g} "


def times(value: float) -> str:
    """How many times, in three digits.

    Args:
        value: The ratio.
    """
    return f"{value:.3g}x" if value < 999.5 else f"{value:.0f}x"
