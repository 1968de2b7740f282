"""Charts of where the time went, what went over the wire, and which plan was in force."""

import statistics
from collections.abc import Sequence

from thinwire.report.chart import Bar, Chart, Line, Mark
from thinwire.report.read import FLOOR, Method, Story
from thinwire.report.svg import short

_STAGES = {"ledger": 1, "select": 2, "encode": 3, "agree": 4, "exchange": 5, "decode": 6, "mean": 6, "vote": 4}
_COMPUTE, _UNDIVIDED = 0, 7
_POINTS = 160


def ceiling(story: Story) -> float | None:
    """How much faster than the reference anybody could be: its step time over the floor's; None where unknown.

    Args:
        story: What is known.
    """
    floor, reference = story.methods.get(FLOOR), story.reference
    if floor is None or not floor.courses or reference is None:
        return None
    return reference.pace / floor.pace


def where_time_went(story: Story) -> Chart:
    """The parts of a step.

    Args:
        story: What is known.
    """
    bars = [_step_bar(method) for method in story.methods.values() if method.courses]
    most = ceiling(story)
    words = [
        "An average step in milliseconds. Stages of the exchange are measured inside thinwire: ledger (add what is "
        "owed), "
        "select (choose what to send), encode, agree (do all ranks mean the same?), exchange (bytes on the wire, "
        "waiting "
        "for the others included), mean (decode and add up). The rest of the step is forward pass, backward pass and "
        "update; where stages run beside the backward pass, their time is taken off the rest.",
        "PyTorch's own hooks do not say where their time goes, so their steps are undivided.",
    ]
    if most is not None and story.reference is not None:
        words.append(
            f"The method {FLOOR} exchanges nothing. {story.reference.name} takes {most:.2f} times as long, and that "
            f"is the "
            f"most that any method can gain here."
        )
    return Chart(key="step-time", title="Where each step's time went", words=words, x_label="milliseconds", bars=bars)


def _step_bar(method: Method) -> Bar:
    steps = [step for course in method.courses for number, step in course.steps.items() if number >= 2]
    steps = steps or [step for course in method.courses for step in course.steps.values()]
    mean = statistics.fmean(step.seconds for step in steps)
    names = dict.fromkeys(name for step in steps for name in step.stages)
    stages = {name: statistics.fmean(step.stages.get(name, 0.0) for step in steps) for name in names}
    note = f"{short(1e3 * mean)} ms"
    if not stages:
        kind = "forward, backward, update" if method.is_floor else "undivided"
        return Bar(name=method.name, parts=[(kind, 1e3 * mean, _COMPUTE if method.is_floor else _UNDIVIDED)], note=note)
    rest = max(0.0, mean - sum(stages.values()))
    parts = [("forward, backward, update", 1e3 * rest, _COMPUTE)]
    parts += [(name, 1e3 * seconds, _STAGES.get(name, 8)) for name, seconds in stages.items()]
    return Bar(name=method.name, parts=parts, note=note)


def bytes_sent(story: Story, colors: dict[str, int]) -> Chart:
    """Bytes of each method.

    Args:
        story: What is known.
        colors: By method.
    """
    bars, reference = [], story.reference
    base = reference.bytes_sent if reference is not None else None
    for method in story.learners:
        sent = method.bytes_sent
        if sent is None:
            bars.append(Bar(name=method.name, parts=[("", 0.0, colors[method.name])], note="nobody counted"))
            continue
        part = (
            f", {100 * sent / base:.3g} % of {reference.name}" if base and reference and method is not reference else ""
        )
        bars.append(
            Bar(name=method.name, parts=[("", sent / 1e6, colors[method.name])], note=f"{sent / 1e6:.3g} MB{part}")
        )
    return Chart(
        key="bytes",
        title="Bytes sent",
        words=["Megabytes that rank 0 has sent in one whole run, the mean of all seeds."],
        x_label="megabytes",
        bars=bars,
    )


def plan_over_wire(story: Story, colors: dict[str, int]) -> Chart:
    """Which plan was in force when, over what the wire was like.

    Args:
        story: What is known.
        colors: By method.
    """
    title, start = "The plan through time, over the wire", story.began.time
    marks, end = _plan_marks(story, colors)
    wire = [(event.time - start, event.bandwidth / 1e6) for event in story.wire if event.bandwidth]
    sensed = [
        (event.time - start, event.bandwidth / 1e6, name)
        for name, method in story.methods.items()
        for course in method.courses
        for event in course.sensed
        if event.bandwidth
    ]
    lines = []
    if wire:
        inside = [(max(0.0, at), rate) for at, rate in wire if at <= end] or wire[:1]
        x, y = [at for at, _ in inside], [rate for _, rate in inside]
        lines.append(Line(name="bandwidth as it was set", x=[*x, end], y=[*y, y[-1]], color=9, steps=True))
    for name in dict.fromkeys(name for _, _, name in sensed):
        own = sorted((at, rate) for at, rate, whose in sensed if whose == name)
        x, y = [at for at, _ in own], [rate for _, rate in own]
        lines.append(Line(name=f"bandwidth as {name} sensed it", x=x, y=y, color=colors.get(name, 8)))
    if not lines:
        why = (
            "The wire's bandwidth is not known: this run was over "
            f"{story.began.network}, nobody set a rate, and no method measured one."
        )
        return Chart(key="plan", title=title, missing=why)
    latency = [event.latency for event in story.wire if event.latency is not None]
    words = [
        "Bandwidth of one host's link in Mbit/s over the whole run. A dotted line is a moment at which a plan changed."
    ]
    if latency:
        delays = dict.fromkeys(f"{1e3 * each:g}" for each in (min(latency), max(latency)))
        words.append(f"One-way delay: {' to '.join(delays)} ms as it was set.")
    if not marks:
        words.append("Every method kept one plan throughout: nothing in this run adapts.")
    return Chart(
        key="plan", title=title, words=words, x_label="seconds", y_label="Mbit/s", lines=lines, marks=marks, log_y=True
    )


def _plan_marks(story: Story, colors: dict[str, int]) -> tuple[list[Mark], float]:
    """Changes of plan of the first seed, and when its last step was done."""
    marks, end = [], 0.0
    for name, method in story.methods.items():
        for course in method.courses[:1]:
            times = {number: step.time - story.began.time for number, step in course.steps.items()}
            end = max(end, *times.values())
            changes = sorted(course.plans)[1:]
            marks += [
                Mark(x=max(0.0, times.get(number, 0.0)), name=_said(course.plans[number].short), color=colors[name])
                for number in changes
            ]
    return marks, max(end, 1e-3)


def _said(short: str) -> str:
    return short or "plan changed"


def predictions(story: Story, colors: dict[str, int]) -> Chart:
    """Predicted against measured.

    Args:
        story: What is known.
        colors: By method.
    """
    title, lines = "Predicted against measured", []
    for name, method in story.methods.items():
        known = method.courses[0].predictions if method.courses else {}
        steps = sorted(known)
        if steps:
            measured = [1e3 * known[step].measured for step in steps]
            predicted = [1e3 * known[step].predicted for step in steps]
            lines.append(Line(name=f"{name}: measured", x=steps, y=measured, color=7))
            lines.append(Line(name=f"{name}: predicted", x=steps, y=predicted, color=colors[name]))
    if not lines:
        why = "No method in this run predicted its exchanges. Only adaptive plans do: they choose by prediction."
        return Chart(key="predicted", title=title, missing=why)
    words = [
        "Milliseconds that a step's exchanges took, and what had been predicted for them before, with the first seed."
    ]
    return Chart(
        key="predicted", title=title, words=words, x_label="steps", y_label="milliseconds", lines=lines, log_y=True
    )


def densities(story: Story, colors: dict[str, int]) -> Chart:
    """The part of the gradient that was sent.

    Args:
        story: What is known.
        colors: By method.
    """
    lines = []
    for method in story.learners:
        course = method.courses[0]
        known = sorted(number for number, step in course.steps.items() if step.density)
        known = known[:: max(1, len(known) // _POINTS)]
        values: Sequence[float] = [100.0 * (course.steps[number].density or 0.0) for number in known]
        if known and min(values) < 99.9:
            lines.append(Line(name=method.name, x=known, y=values, color=colors[method.name]))
    return Chart(
        key="densities",
        title="Density: the part that is sent",
        words=[
            "Percent of the gradient's elements that rank 0 sends in a step. Methods that send everything are left out."
        ],
        x_label="steps",
        y_label="percent sent",
        lines=lines,
        log_y=True,
        missing="" if lines else "Every method in this run sent everything.",
    )
