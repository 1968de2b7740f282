"""Charts of how good the models became, over time and over bytes."""

import statistics
from collections.abc import Callable, Sequence

from thinwire.observe.records import Stepped
from thinwire.report.chart import Bar, Chart, Line
from thinwire.report.read import Course, Method, Story, band

TOLERANCE = 0.01
"""How much worse than the reference's final quality still counts as there."""

_POINTS = 160
_SMOOTHING = 0.9


def target(story: Story) -> float | None:
    """The quality to reach: the reference's own at its end, and one percent for luck.

    Args:
        story: What is known.
    """
    quality = story.reference.quality if story.reference is not None else None
    return None if quality is None else quality + TOLERANCE * abs(quality)


def seconds_to(course: Course, wanted: float) -> float | None:
    """When a course was first seen to be as good as that, between two examinations by a straight line; None for never.

    Args:
        course: Of one seed.
        wanted: The quality.
    """
    before: tuple[float, float] | None = None
    for step in sorted(course.exams):
        exam = course.exams[step]
        if exam.quality is None:
            continue
        if exam.quality <= wanted:
            if before is None or before[1] == exam.quality:
                return exam.elapsed
            part = (before[1] - wanted) / (before[1] - exam.quality)
            return before[0] + part * (exam.elapsed - before[0])
        before = (exam.elapsed, exam.quality)
    return None


def headline(story: Story, colors: dict[str, int]) -> Chart:
    """Seconds to the same quality.

    Args:
        story: What is known.
        colors: By method.
    """
    title = "Time to the same quality"
    wanted, reference = target(story), story.reference
    if wanted is None or reference is None:
        return Chart(key="headline", title=title, missing="No model was examined on held-out data (--exams 0).")
    if story.stopped:
        return Chart(
            key="headline",
            title=title,
            missing="The run was stopped before its last step, so there is no final quality to be reached.",
        )
    bars, base = [], None
    for method in story.learners:
        times = [seconds_to(course, wanted) for course in method.courses]
        reached = [each for each in times if each is not None]
        if len(reached) < len(times) or not reached:
            final = method.quality
            said = f"not reached (ends at {final:.3g})" if final is not None else "not examined"
            bars.append(Bar(name=method.name, parts=[("", 0.0, colors[method.name])], note=said))
            continue
        mean = statistics.fmean(reached)
        base = mean if method is reference else base
        ratio = f", {base / mean:.1f}x as fast" if base and method is not reference else ""
        spread = f" ({min(reached):.3g}–{max(reached):.3g})" if len(reached) > 1 else ""
        bars.append(Bar(name=method.name, parts=[("", mean, colors[method.name])], note=f"{mean:.3g} s{spread}{ratio}"))
    words = [
        f"Seconds of training until the model is as good on held-out data as {reference.name} is at its end, give or "
        f"take "
        f"{100 * TOLERANCE:.0f} % ({wanted:.4g} {story.began.unit}; lower is better). Shorter bars are better. "
        f"Examinations "
        f"are not counted as time, and between two of them a straight line is assumed.",
        f"All methods start from the same weights and see the same batches. Seeds: {len(story.began.seeds)}.",
    ]
    return Chart(key="headline", title=title, words=words, x_label="seconds of training", bars=bars)


def over_time(story: Story, colors: dict[str, int]) -> Chart:
    """Training loss over seconds.

    Args:
        story: What is known.
        colors: By method.
    """
    lines = _curves(story, colors, lambda step: step.elapsed)
    words = [
        f"Training loss of rank 0 ({story.began.unit}, smoothed) over the seconds that each method's own steps took: "
        f"forward "
        f"and backward pass, exchange and update. A band goes from the best seed to the worst."
    ]
    return Chart(
        key="loss-time",
        title="Training loss over wall-clock time",
        words=words,
        x_label="seconds of training",
        y_label=f"training loss, {story.began.unit}",
        lines=lines,
        missing="" if lines else "No method that trains something has done a step.",
    )


def over_bytes(story: Story, colors: dict[str, int]) -> Chart:
    """Training loss over what rank 0 sent.

    Args:
        story: What is known.
        colors: By method.
    """
    lines = _curves(story, colors, lambda step: step.bytes_total)
    silent = [method.name for method in story.learners if method.bytes_sent is None]
    words = [
        "The same losses over the bytes that rank 0 has put on the wire, headers and control messages included. The "
        "axis "
        "has powers of ten: one grid line to the left is a small fraction of the traffic."
    ]
    if silent:
        words.append(f"Nobody counted the bytes of {', '.join(silent)}: over loopback only thinwire counts its own.")
    return Chart(
        key="loss-bytes",
        title="Training loss over bytes sent",
        words=words,
        x_label="bytes sent by rank 0",
        y_label=f"training loss, {story.began.unit}",
        lines=lines,
        log_x=True,
        missing="" if lines else "No method in this run counted its bytes.",
    )


def held_out(story: Story, colors: dict[str, int]) -> Chart:
    """Quality on held-out data over steps.

    Args:
        story: What is known.
        colors: By method.
    """
    lines = []
    for method in story.learners:
        steps = sorted(set.intersection(*({*course.exams} for course in method.courses)))
        series = [[_number(course.exams[step].quality) for step in steps] for course in method.courses]
        if not steps:
            continue
        mean, low, high = band(series)
        line = Line(name=method.name, x=steps, y=mean, low=low, high=high, color=colors[method.name], dots=True)
        lines.append(line)
    words = [
        f"Quality on data that are never trained on ({story.began.unit}; lower is better), step for step. Where two "
        f"curves "
        f"lie on each other, compression has cost nothing; the gap at the end is its price in quality."
    ]
    return Chart(
        key="held-out",
        title="Held-out quality, step for step",
        words=words,
        x_label="steps",
        y_label=story.began.unit,
        lines=lines,
        missing="" if lines else "No model was examined on held-out data.",
    )


def front(story: Story, colors: dict[str, int]) -> Chart:
    """What each method costs and what it brings.

    Args:
        story: What is known.
        colors: By method.
    """
    title = "Price and quality"
    points = [(m, m.quality) for m in story.learners]
    lines = [
        Line(name=m.name, x=[1e3 * m.pace], y=[quality], color=colors[m.name], dots=True)
        for m, quality in points
        if quality is not None
    ]
    best = [
        m.name
        for m, quality in points
        if quality is not None
        and not any(q is not None and q <= quality and o.pace <= m.pace and o is not m for o, q in points)
    ]
    words = [
        "Each method as a point: left is a quick step, down is a good model at the end. Nobody is both quicker and "
        "better "
        f"than {', '.join(best) or 'any of them'}: these form the front (Pareto).",
    ]
    return Chart(
        key="front",
        title=title,
        words=words,
        x_label="milliseconds for a step (median)",
        y_label=f"final quality, {story.began.unit}",
        lines=lines,
        missing="" if lines else "No model was examined on held-out data.",
    )


def _curves(story: Story, colors: dict[str, int], x_of: Callable[[Stepped], float | None]) -> list[Line]:
    lines = []
    for method in story.learners:
        steps = _thinned(method)
        across = [[x_of(course.steps[step]) for step in steps] for course in method.courses]
        if not steps or any(x is None for series in across for x in series):
            continue
        mean, low, high = band([_smooth(course, steps) for course in method.courses])
        x = band([[_number(each) for each in series] for series in across])[0]
        lines.append(Line(name=method.name, x=x, y=mean, low=low, high=high, color=colors[method.name]))
    return lines


def _thinned(method: Method) -> list[int]:
    """Steps that all seeds have done, at most so many."""
    steps = sorted(set.intersection(*({*course.steps} for course in method.courses)))
    every = max(1, len(steps) // _POINTS)
    return steps[::every] if not steps or steps[-1] in steps[::every] else [*steps[::every], steps[-1]]


def _smooth(course: Course, wanted: Sequence[int]) -> list[float]:
    found, value = {}, None
    for step in sorted(course.steps):
        loss = course.steps[step].loss
        if loss is not None:
            value = loss if value is None else _SMOOTHING * value + (1 - _SMOOTHING) * loss
        found[step] = _number(value)
    return [found[step] for step in wanted]


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
