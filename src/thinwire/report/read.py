"""What the events of one or several runs say, by method and seed."""

import bisect
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from thinwire.errors import ThinwireError
from thinwire.observe.records import (
    Began,
    Ended,
    Event,
    Examined,
    Owing,
    Planned,
    Predicted,
    Stepped,
    Wired,
    events_in,
)

FLOOR = "none"
"""The method that exchanges nothing: its step time is the floor, its model no model."""

_FILE = "events.jsonl"


class ReportError(ThinwireError, ValueError):
    """There is nothing to report on."""


@dataclass
class Course:
    """One method with one seed."""

    steps: dict[int, Stepped] = field(default_factory=dict)
    exams: dict[int, Examined] = field(default_factory=dict)
    looks: dict[int, Owing] = field(default_factory=dict)
    plans: dict[int, Planned] = field(default_factory=dict)
    sensed: list[Wired] = field(default_factory=list)
    predictions: dict[int, Predicted] = field(default_factory=dict)
    end: Ended | None = None

    def elapsed_at(self, step: int) -> float:
        """Seconds of training before a step."""
        known = sorted(self.steps)
        place = bisect.bisect_left(known, step)
        return self.steps[known[place - 1]].elapsed if place else 0.0


@dataclass
class Method:
    """One method with all its seeds."""

    name: str
    words: str = ""
    rate: float | None = None
    seeds: dict[int, Course] = field(default_factory=dict)

    @property
    def courses(self) -> list[Course]:
        """Those with steps."""
        return [course for course in self.seeds.values() if course.steps]

    @property
    def is_floor(self) -> bool:
        """Whether this trains nothing."""
        return self.name == FLOOR

    @property
    def pace(self) -> float:
        """Seconds of a step: the median over all steps but the first ones, which prepare things."""
        seconds = [step.seconds for each in self.courses for number, step in each.steps.items() if number >= 2]
        return statistics.median(seconds or [step.seconds for each in self.courses for step in each.steps.values()])

    @property
    def quality(self) -> float | None:
        """At the end, the mean over all seeds; None where it was never examined."""
        found = self.qualities
        return statistics.fmean(found) if found else None

    @property
    def qualities(self) -> list[float]:
        """The last one of each seed."""
        last = [course.exams[max(course.exams)].quality for course in self.courses if course.exams]
        return [quality for quality in last if quality is not None]

    @property
    def bytes_sent(self) -> float | None:
        """By rank 0 in one seed, the mean; None where nobody counted."""
        totals = [course.steps[max(course.steps)].bytes_total for course in self.courses]
        counted = [total for total in totals if total is not None]
        return statistics.fmean(counted) if counted else None


@dataclass
class Story:
    """Everything that is known."""

    began: Began
    methods: dict[str, Method]
    wire: list[Wired]

    @property
    def learners(self) -> list[Method]:
        """The methods that train something."""
        return [method for method in self.methods.values() if not method.is_floor and method.courses]

    @property
    def reference(self) -> Method | None:
        """What the others are measured by: dense, or plain DDP, or the first one."""
        named = [self.methods[name] for name in ("dense", "ddp") if name in self.methods]
        return next((method for method in [*named, *self.learners] if method.courses), None)

    @property
    def stopped(self) -> bool:
        """Whether some method has not done all its steps."""
        return any(max(course.steps) + 1 < self.began.steps for each in self.learners for course in each.courses)


def read(runs: Sequence[str | Path]) -> Story:
    """Read runs. Methods of several runs of one task are laid side by side.

    Args:
        runs: Folders, or files of events.

    Returns:
        What they say.

    Raises:
        ReportError: There is nothing to read, or the runs are of different tasks.
    """
    stories = [_story(Path(run)) for run in runs]
    if not stories:
        raise ReportError("no run was named; write thinwire report FOLDER")
    whole = stories[0]
    for other, run in zip(stories[1:], runs[1:], strict=True):
        if other.began.task != whole.began.task:
            raise ReportError(
                f"{run} trained {other.began.task} and {runs[0]} {whole.began.task}; report on them apart"
            )
        for name, method in other.methods.items():
            known = whole.methods.setdefault(name, Method(name, method.words, method.rate))
            for seed, course in method.seeds.items():
                known.seeds[seed if seed not in known.seeds else max(known.seeds) + 1] = course
        whole.wire.extend(other.wire)
    return whole


def _story(run: Path) -> Story:
    path = run / _FILE if run.is_dir() else run
    try:
        events = list(events_in(path.read_text(errors="replace").splitlines()))
    except OSError as error:
        raise ReportError(f"{path} cannot be read ({error.strerror}); name the folder of a run") from error
    heads = [event for event in events if isinstance(event, Began)]
    if not heads:
        raise ReportError(f"{path} tells of no run: it has no event that says how one began")
    began = heads[-1]
    methods = {name: Method(name, began.plans.get(name, ""), began.rates.get(name)) for name in began.methods}
    story = Story(began, methods, [event for event in events if isinstance(event, Wired) and not event.method])
    for event in events:
        _add(story, event)
    if not story.learners and not any(method.courses for method in methods.values()):
        raise ReportError(f"{path} tells of a run that was stopped before its first step was done")
    return story


def _add(story: Story, event: Event) -> None:
    """A step that was done again after a resume counts as it was done last."""
    if isinstance(event, Began) or event.method not in story.methods:
        return
    course = story.methods[event.method].seeds.setdefault(event.seed, Course())
    if isinstance(event, Stepped):
        course.steps[event.step] = event
    elif isinstance(event, Examined):
        course.exams[event.step] = event
    elif isinstance(event, Owing):
        course.looks[event.step] = event
    elif isinstance(event, Planned):
        course.plans[event.step] = event
    elif isinstance(event, Wired):
        course.sensed.append(event)
    elif isinstance(event, Predicted):
        course.predictions[event.step] = event
    else:
        course.end = event


def band(series: Iterable[Sequence[float]]) -> tuple[list[float], list[float], list[float]]:
    """Mean, least and most of several series, as far as the shortest goes.

    Args:
        series: One for each seed.
    """
    columns = list(zip(*series, strict=False))
    means = [statistics.fmean(column) for column in columns]
    return means, [min(column) for column in columns], [max(column) for column in columns]
