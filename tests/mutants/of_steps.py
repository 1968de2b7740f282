"""Mutants of how ranks find out that they disagree, or that one of them failed."""

from tests.mutants.mutant import Mutant

STEP = "tests/unit/test_step.py::"
WIRE = "tests/distributed/test_wire.py::"
FAULTS = "tests/distributed/test_faults.py::"

_FIELDS = (
    '    "what", "world", "generation", "step", "group", "numel", "dtype", "layout", "plan", "loss_scale",\n'
    '    "coordinates",\n'
)
_LAST = {
    "what": "what it is about to do",
    "world": "how many ranks there are",
    "generation": "how often the group was formed",
    "step": "which step this is",
    "group": "which group of parameters",
    "numel": "how many elements",
    "dtype": "of which type",
    "layout": "which parameters in which order",
    "loss_scale": "which loss scale",
    "coordinates": "which lots were drawn",
}


def _without(field: str) -> Mutant:
    """The roll call compares all fields but one."""
    rest = _FIELDS.replace(f'    "{field}",\n', "").replace(f'"{field}", ', "").replace(f', "{field}"', "")
    assert rest != _FIELDS
    test = f"tests/wire/test_records.py::test_fields_that_must_agree_are_found_and_others_may_differ[{field}]"
    if field == "plan":
        test = "tests/wire/test_records.py::test_another_plan_is_found"
    told = _LAST.get(field, "which plan")
    return Mutant(
        name=f"roll-call-without-{field.replace('_', '-')}",
        safeguard=f"The roll call compares {told}",
        file="roll_call.py",
        old=_FIELDS,
        new=rest,
        tests=(test,),
    )


OF_STEPS = (
    _without("plan"),
    *(_without(field) for field in _LAST),
    Mutant(
        name="fingerprint-without-feedback",
        safeguard="The fingerprint of a plan has how the ledger remembers",
        file="plans.py",
        old='return {**parts, "feedback": dataclasses.asdict(self.feedback)}',
        new="return parts",
        tests=("tests/unit/test_plans.py::test_every_option_is_in_the_fingerprint",),
    ),
    Mutant(
        name="fingerprint-without-an-option",
        safeguard="The fingerprint of a plan has every option of every part",
        file="registry.py",
        old="for f in dataclasses.fields(part)}  # type: ignore[arg-type]\n        plain",
        new='for f in dataclasses.fields(part) if f.name != "width"}\n        plain',
        tests=("tests/unit/test_plans.py::test_every_option_is_in_the_fingerprint",),
    ),
    Mutant(
        name="two-ranks-of-one-number",
        safeguard="The roll call sees that every record is of the rank it came from",
        file="roll_call.py",
        old="if strangers := tuple(place for place, r in enumerate(records) if r.rank != place):",
        new="if strangers := ():",
        tests=("tests/wire/test_records.py::test_fields_that_must_agree_are_found_and_others_may_differ[rank]",),
    ),
    Mutant(
        name="hear-no-failure",
        safeguard="A failure in the roll call is raised on every rank",
        file="roll_call.py",
        old="    if failed:\n",
        new="    if False:\n",
        tests=("tests/wire/test_records.py::test_fields_that_must_agree_are_found_and_others_may_differ[failure]",),
    ),
    Mutant(
        name="tell-no-failure",
        safeguard="A rank that fails before the roll call says so in it",
        file="carry.py",
        old="failure=describe(offer.failure),",
        new='failure="",',
        tests=(f"{FAULTS}test_a_leader_that_fails_names_itself",),
    ),
    Mutant(
        name="confess-nothing",
        safeguard="A rank that failed behind a roll call says so in the next one",
        file="step.py",
        old="            if self.failure is not None:\n                self._confess",
        new="            if False:\n                self._confess",
        tests=(f"{STEP}test_a_fault_behind_the_roll_call_is_told_at_the_next_one",),
    ),
    Mutant(
        name="vote-without-a-voice",
        safeguard="The vote at the end of a step asks the other ranks",
        file="step.py",
        old="            roll = call_roll(self.wire, record, self.plan, note)\n"
        "            if self.pilot is not None:\n"
        "                self.pilot.hear([each.numpy().tobytes() for each in roll.came_along])\n",
        new="            pass\n",
        tests=(f"{STEP}test_a_fault_in_the_last_group_is_told_by_the_vote",),
    ),
    Mutant(
        name="step-without-a-vote",
        safeguard="A step ends with a vote",
        file="sync.py",
        old="            if last:\n                step.vote()\n",
        new="            if last:\n",
        tests=(f"{FAULTS}test_a_fault_in_the_last_bucket_reaches_everybody",),
    ),
    Mutant(
        name="fall-out-of-step-silently",
        safeguard="A rank that falls out of step does not let the others wait",
        file="roll_call.py",
        old="        wire.abandon(describe(error))\n",
        new="",
        tests=(f"{STEP}test_a_rank_that_falls_out_of_step_says_so_at_once",),
    ),
    Mutant(
        name="swallow-a-damaged-record",
        safeguard="A rank that cannot read a record does not let the others wait",
        file="roll_call.py",
        old="    with in_step(wire, 1):\n        # Ranks that can read",
        new="    if True:\n        # Ranks that can read",
        tests=(f"{STEP}test_a_record_that_one_rank_cannot_read_keeps_nobody_waiting",),
    ),
    Mutant(
        name="talk-when-all-is-said",
        safeguard="When all ranks know of a failure, or cannot be reached, nobody talks to them any more",
        file="step.py",
        old="        if self.over:\n            return None\n",
        new="",
        tests=(f"{STEP}test_a_rank_that_falls_out_of_step_says_so_at_once",),
    ),
    Mutant(
        name="commit-an-overflow",
        safeguard="A step with a number that is not finite changes no debt",
        file="step.py",
        old="        if self.overflow or self.skipped:\n            return\n",
        new="        if self.skipped:\n            return\n",
        tests=(f"{STEP}test_one_number_that_is_not_finite_undoes_the_step_in_every_group",),
    ),
    Mutant(
        name="commit-a-skipped-step",
        safeguard="A step that the optimizer skips changes no debt",
        file="step.py",
        old="        if self.overflow or self.skipped:\n            return\n",
        new="        if self.overflow:\n            return\n",
        tests=("tests/distributed/test_corners.py::test_looking_changes_nothing",),
    ),
    Mutant(
        name="forget-an-overflow",
        safeguard="One group that is not finite marks the whole step",
        file="step.py",
        old="        self.overflow |= carried.overflow\n",
        new="",
        tests=(f"{STEP}test_one_number_that_is_not_finite_undoes_the_step_in_every_group",),
    ),
    Mutant(
        name="leave-half-a-failed-step",
        safeguard="After a failed step no gradient is left that could be used",
        file="step.py",
        old="        if self.failure is not None or self.overflow:\n",
        new="        if self.overflow:\n",
        tests=("tests/distributed/test_faults.py::test_a_fault_in_the_last_bucket_reaches_everybody",),
    ),
    Mutant(
        name="leave-half-an-overflow",
        safeguard="Nor after one in which some group is not finite",
        file="step.py",
        old="        if self.failure is not None or self.overflow:\n",
        new="        if self.failure is not None:\n",
        tests=("tests/distributed/test_corners.py::test_an_overflow_in_one_bucket_spoils_all",),
    ),
    Mutant(
        name="deaf-to-bad-news",
        safeguard="Who waits looks into the store for what other ranks have written there",
        file="wire.py",
        old='        if not self._store.check([f"{self._keys}/failed"]):\n            return\n',
        new="        if True:\n            return\n",
        tests=(f"{WIRE}test_a_rank_that_gives_up_is_heard_at_once",),
    ),
    Mutant(
        name="no-bad-news",
        safeguard="Who gives up writes it into the store",
        file="wire.py",
        old='                self._store.set(f"{self._keys}/failed", news)\n',
        new="                pass\n",
        tests=(f"{WIRE}test_a_rank_that_gives_up_is_heard_at_once",),
    ),
    Mutant(
        name="no-deadline",
        safeguard="Every exchange has a deadline",
        file="wire.py",
        old="            if time.monotonic() > deadline:\n",
        new="            if False:\n",
        tests=(f"{WIRE}test_a_rank_that_is_too_late_is_not_waited_for",),
    ),
    Mutant(
        name="name-nobody",
        safeguard="A deadline that passed names the ranks that did not come",
        file="wire.py",
        old="late = self._missing() if isinstance(error, DeadlineError) else ()",
        new="late: tuple[int, ...] = ()",
        tests=(f"{WIRE}test_a_rank_that_is_too_late_is_not_waited_for",),
    ),
    Mutant(
        name="use-a-broken-group",
        safeguard="A group is not used again after a failure",
        file="wire.py",
        old="        if self.broken:\n            raise BrokenGroupError",
        new="        if False:\n            raise BrokenGroupError",
        tests=(f"{WIRE}test_a_rank_that_gives_up_is_heard_at_once",),
    ),
    Mutant(
        name="use-the-default-group",
        safeguard="A rank that has left its group does not talk in the default group instead",
        file="wire.py",
        old="        if self._group is None:\n",
        new="        if False:\n",
        tests=(
            f"{WIRE}test_a_group_that_was_left_is_not_the_default_group[1]",
            f"{WIRE}test_a_group_that_was_left_is_not_the_default_group[2]",
        ),
    ),
    Mutant(
        name="let-buffers-go",
        safeguard="The buffers of an operation that may still run are kept",
        file="wire.py",
        old="            self._abandoned.append((work, buffers))\n",
        new="",
        tests=(f"{WIRE}test_a_rank_that_is_too_late_is_not_waited_for",),
    ),
    Mutant(
        name="read-the-padding",
        safeguard="What an all-gather pads messages with is cut off again",
        file="wire.py",
        old="here[rank * longest : rank * longest + size]",
        new="here[rank * longest : rank * longest + longest]",
        tests=(f"{WIRE}test_collectives_bring_what_they_should[3]",),
    ),
    Mutant(
        name="reuse-a-group-name",
        safeguard="A private group of some ranks is not destroyed, for its name would be used again",
        file="membership.py",
        old="life=str(generation), private=everybody)",
        new="life=str(generation), private=True)",
        tests=(f"{WIRE}test_a_group_of_some_ranks_can_be_formed_again",),
        also=("RuntimeError",),
    ),
    Mutant(
        name="stale-notes",
        safeguard="What was announced in a step that failed is forgotten before the next",
        file="step.py",
        old="                forget(self.wire)\n",
        new="                pass\n",
        tests=(f"{STEP}test_a_fault_is_told_and_what_was_announced_behind_it_is_forgotten[0]",),
    ),
    Mutant(
        name="announced-and-not-done",
        safeguard="What a rank has announced it does, even if it has failed meanwhile",
        file="step.py",
        old="        if self.over:\n            return None\n",
        new="        if self.over or self.failure is not None:\n            return None\n",
        tests=(f"{STEP}test_a_fault_is_told_and_what_was_announced_behind_it_is_forgotten[0]",),
        also=("SyncError",),
    ),
)
