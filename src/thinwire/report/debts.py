"""Charts of what is owed: how much, for how long, and by which layers."""

from thinwire.observe.records import FIRST_EXPONENT, Owing
from thinwire.report.chart import Bar, Chart, Line
from thinwire.report.read import Method, Story, band

_LAYERS = 12
_NOTHING = "No method in this run owes anything: each of them sends everything, or keeps no account of the rest."


def norms(story: Story, colors: dict[str, int]) -> Chart:
    """The norm of all debts through the run.

    Args:
        story: What is known.
        colors: By method.
    """
    lines = []
    for method in _debtors(story):
        steps = sorted(set.intersection(*({*course.looks} for course in method.courses)))
        if not steps:
            continue
        mean, low, high = band([[course.looks[step].norm for step in steps] for course in method.courses])
        lines.append(Line(name=method.name, x=steps, y=mean, low=low, high=high, color=colors[method.name], dots=True))
    words = [
        "The Euclidean norm of everything that rank 0 owes: gradients that were computed and not sent yet. It should "
        "level "
        "off. A norm that keeps growing means that the plan sends too little for this model to train well.",
    ]
    return Chart(
        key="residual",
        title="What is still owed",
        words=words,
        x_label="steps",
        y_label="norm of debts",
        lines=lines,
        missing="" if lines else _missing(story),
    )


def waits(story: Story, colors: dict[str, int]) -> Chart:
    """How long elements wait, from how rarely they are sent.

    Args:
        story: What is known.
        colors: By method.
    """
    bars = []
    for method in _debtors(story):
        look = _last_look(method)
        shown = sorted(look.layers.items(), key=lambda item: -item[1])[: _LAYERS // max(1, len(_debtors(story))) + 2]
        bars += [
            Bar(name=f"{layer}", parts=[(method.name, 100 * owed, colors[method.name])], note=_wait(owed))
            for layer, owed in shown
        ]
    words = [
        "Percent of a layer's elements for which rank 0 owes something right after the last look: the layers that "
        "owe most. "
        "What is behind a bar follows from it: if one element in a hundred is settled in a step, an element waits a "
        "hundred "
        "steps on average. That is the age of the residual.",
        "Elements whose gradient is always zero owe nothing and count as settled.",
    ]
    return Chart(
        key="layers",
        title="Layers and their waits",
        words=words,
        x_label="percent of elements in debt",
        bars=bars,
        missing="" if bars else _missing(story),
    )


def histogram(story: Story, colors: dict[str, int]) -> Chart:
    """Magnitudes of the debts.

    Args:
        story: What is known.
        colors: By method.
    """
    lines = []
    for method in _debtors(story):
        bars = _last_look(method).histogram
        total = sum(bars)
        inside = [place for place, count in enumerate(bars) if count]
        if not total:
            continue
        span = range(inside[0], inside[-1] + 1)
        exponents = [float(FIRST_EXPONENT + place) for place in span]
        share = [100 * bars[place] / total for place in span]
        lines.append(Line(name=method.name, x=exponents, y=share, color=colors[method.name], steps=True))
    words = [
        "Magnitudes of what rank 0 owes at the last look, by powers of two. The right edge is cut off where "
        "selection takes "
        "what is large; a heap far to the left is what may wait for ever without anybody noticing.",
    ]
    return Chart(
        key="histogram",
        title="How large the debts are",
        words=words,
        x_label="magnitude, as a power of two",
        y_label="percent of debts",
        lines=lines,
        missing="" if lines else _missing(story),
    )


def _debtors(story: Story) -> list[Method]:
    return [each for each in story.learners if all(course.looks for course in each.courses) and _last_look(each).layers]


def _last_look(method: Method) -> Owing:
    looks = method.courses[0].looks
    return looks[max(looks)]


def _wait(owed: float) -> str:
    return f"{100 * owed:.3g} %, a wait of {1 / (1 - owed):,.0f} steps" if owed < 1 else "all of it"


def _missing(story: Story) -> str:
    compressing = any(step.density for each in story.learners for c in each.courses for step in c.steps.values())
    early = story.began.steps < 25 or story.stopped
    if compressing and early:
        return "The run was too short: debts are looked at every 25 steps, because a look costs a copy of them."
    return _NOTHING
