"""A rate and a queue, as commands of tc: an htb class with a bfifo behind it.

An htb class can be changed while packets wait in it. A token bucket (tbf) cannot: packets queued before its burst
shrank are larger than the new burst and never leave.
"""

from thinwire.lab.link import Link

_FRAME = 1514
_BURST_SECONDS = 0.001


def rate_lines(device: str, link: Link, shaped: bool) -> list[str]:
    """What ``tc -batch`` has to read so that a device sends as a link says.

    Args:
        device: Its name.
        link: The direction that leaves through it.
        shaped: Whether the device has a class already, which is then changed in place.
    """
    if link.rate is None:
        return [f"qdisc del dev {device} root"] if shaped else []
    burst = max(2 * _FRAME, int(link.rate / 8 * _BURST_SECONDS))
    speed = f"rate {int(link.rate)}bit ceil {int(link.rate)}bit burst {burst} cburst {burst} quantum 60000"
    root = [] if shaped else [f"qdisc replace dev {device} root handle 1: htb default 1"]
    return [
        *root,
        f"class replace dev {device} parent 1: classid 1:1 htb {speed}",
        f"qdisc replace dev {device} parent 1:1 handle 11: bfifo limit {link.queue_bytes}",
    ]
