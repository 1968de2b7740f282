"""Mutants of what a training run is guarded by: stopping, saving, telling."""

from tests.mutants.mutant import Mutant

EVENTS = "tests/unit/test_events.py::"
OPTIMIZERS = "tests/unit/test_optimizers.py::"
RACES = "tests/tasks/test_side_by_side.py::"
REPORT = "tests/report/test_report.py::"

RESUMED = f"{RACES}test_stopped_and_resumed_it_ends_with_the_same_bits"

OF_TRAINING = (
    Mutant(
        name="write-behind-a-torn-line",
        safeguard="A line that did not fit is ended before the next one",
        file="observe/sinks.py",
        old="self._torn = written < len(line)",
        new="self._torn = False",
        tests=(f"{EVENTS}test_a_line_that_did_not_fit_does_not_spoil_the_next",),
        also=("AttributeError",),
    ),
    Mutant(
        name="die-of-a-full-disk",
        safeguard="Events that cannot be written are lost, and nothing else",
        file="observe/sinks.py",
        old="        except OSError as error:\n            self._lose(str(error))\n            return",
        new="        except ValueError as error:\n            self._lose(str(error))\n            return",
        tests=(f"{EVENTS}test_a_full_disk_loses_events_and_nothing_else",),
        also=("OSError",),
    ),
    Mutant(
        name="serve-the-whole-world",
        safeguard="Figures are served on loopback only",
        file="observe/prometheus.py",
        old='addr="127.0.0.1"',
        new='addr="0.0.0.0"',
        tests=(f"{EVENTS}test_prometheus_serves_this_machine_only",),
    ),
    Mutant(
        name="checkpoint-in-place",
        safeguard="A checkpoint is whole or not there",
        file="tasks/checkpoints.py",
        old='draft = path.with_suffix(".draft")',
        new="draft = path",
        tests=(f"{RACES}test_a_checkpoint_is_whole_or_not_there",),
    ),
    Mutant(
        name="resume-without-the-optimizer",
        safeguard="A resumed run has the optimizer's state",
        file="tasks/runner.py",
        old='        self.optimizer.load_state_dict(state["optimizer"])\n',
        new="",
        tests=(RESUMED,),
    ),
    Mutant(
        name="resume-without-the-debts",
        safeguard="A resumed run owes what it owed",
        file="tasks/runner.py",
        old='            self.sync.load_state_dict(state["sync"])',
        new="            pass",
        tests=(RESUMED,),
    ),
    Mutant(
        name="two-first-moments",
        safeguard="The optimizer gives its first moment away",
        file="optimizers.py",
        old='(0.0, *group[name][1:]) if name == "betas" else 0.0',
        new="group[name]",
        tests=(f"{OPTIMIZERS}test_adam_gives_its_first_moment_away", f"{OPTIMIZERS}test_sgd_gives_its_momentum_away"),
    ),
    Mutant(
        name="unescaped-page",
        safeguard="What a run says of itself cannot become part of the page",
        file="report/page.py",
        old="autoescape=True",
        new="autoescape=False",
        tests=(f"{REPORT}test_everything_is_shown_of_a_run_that_has_everything",),
    ),
)
