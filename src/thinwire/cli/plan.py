"""`thinwire plan`: what would a step take, on so many hosts and such a network? Arithmetic, before any training."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from thinwire.control.machine import calibrated
from thinwire.control.network import Network
from thinwire.errors import PlanError
from thinwire.planning import picture
from thinwire.planning.forecast import HOSTS, Answer, Question, answer, crossover, line_of_code, over_hosts
from thinwire.planning.models import count, shapes_of

_UNITS = {"kbit": 1e-3, "mbit": 1.0, "gbit": 1e3}


def plan(
    *,
    model: Annotated[str, Parameter(help="gpt2-small, resnet50, or a file: a state dict, or JSON with shapes.")],
    hosts: Annotated[int, Parameter(help="How many train together.")] = 4,
    net: Annotated[
        str, Parameter(help="Rate and one-way delay of a link: 100mbit,20ms; or a probe's JSON.")
    ] = "1gbit,0.1ms",
    compute: Annotated[float, Parameter(help="Seconds of a step without synchronisation, on one host.")] = 0.0,
    out: Annotated[Path | None, Parameter(help="A picture, .png or .svg; or all figures, .json.")] = None,
) -> int:
    """Predict step times of dense, fp16, PowerSGD and thinwire's choice over hosts, and where they cross.

    Two thirds of the compute time are taken to be backward, behind which exchanges can hide.

    Raises:
        PlanError: Something asked for does not exist or has no meaning.
    """
    if hosts < 2 or not 0.0 <= compute < 1e6:
        raise PlanError(f"asked for {hosts} hosts and {compute} s of compute; write 2 hosts or more, and 0 s or more")
    if out is not None and out.suffix != ".json":
        picture.check(out)
    shapes = shapes_of(model)
    network = network_of(net)
    question = Question(shapes=shapes, network=network, compute=compute, window=compute * 2 / 3, machine=calibrated())
    answers = over_hosts(question, sorted({*HOSTS, hosts}))
    mine = answer(question, hosts)
    console = Console() if Console().is_terminal else Console(width=120)
    console.print(table_of(answers, hosts))
    for line in (f"{model}: {count(shapes) / 1e6:.1f} M parameters; the wire: {network}.", *words(question, mine)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if out is not None:
        if out.suffix == ".json":
            out.write_text(json.dumps([_plain(each) for each in answers], indent=1) + "\n")
        else:
            picture.draw(question, hosts, out)
    return 0


def network_of(text: str) -> Network:
    """A network from ``100mbit,20ms``, or from the file of a probe.

    Raises:
        PlanError: It is neither.
    """
    path = Path(text)
    try:
        if path.suffix == ".json":
            found = json.loads(path.read_text())["fit"]
            return Network(latency=float(found["latency"]), per_byte=float(found["per_byte"]))
        rate, _, delay = text.lower().partition(",")
        (unit,) = [name for name in _UNITS if rate.endswith(name)]
        milliseconds = float(delay.removesuffix("ms") or 0.1)
        megabits = float(rate.removesuffix(unit)) * _UNITS[unit]
        if not (0.0 < megabits < 1e9 and 0.0 <= milliseconds < 1e6):
            raise ValueError("out of range")
        return Network.of(max(milliseconds, 1e-3), megabits)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise PlanError(
            f"{text!r} is no network ({error}); write a rate and a one-way delay such as 100mbit,20ms, or the "
            f"file that thinwire probe --out FILE.json wrote"
        ) from error


def table_of(answers: list[Answer], marked: int) -> Table:
    """One row for each number of hosts."""
    names = list(answers[0].peers)
    table = Table("hosts", *names, "thinwire", "its plan", "energy", "sent", "over dense")
    for each in answers:
        cells = [_time(each.peers[name]) for name in names]
        table.add_row(
            f"{each.hosts}" + (" <" if each.hosts == marked else ""), *cells, _time(each.seconds), str(each.choice),
            f"{100 * each.gain:.0f} %", f"{each.bytes_sent / 1e6:.3g} MB", f"{each.speedup:.1f}x",
        )  # fmt: skip
    return table


def words(question: Question, mine: Answer) -> list[str]:
    """What it means."""
    cross = crossover(question, mine.hosts)
    where = "at no bandwidth up to 1 Tbit/s" if cross is None else f"from {cross:.3g} Mbit/s on"
    return [
        f"On {mine.hosts} hosts: {mine.choice}, {_time(mine.seconds)} a step; dense {_time(mine.peers['dense'])}. "
        f"Dense is the faster one {where}.",
        f"Write: {line_of_code(mine)}",
        "Predicted from declared bytes and rounds, with this machine's kernels and with gains of magnitudes that fall "
        "off exponentially. Step times are not times to a loss: a thin plan may need more steps.",
    ]


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


def _plain(each: Answer) -> dict[str, object]:
    return {**asdict(each), "choice": str(each.choice), "speedup": each.speedup}
