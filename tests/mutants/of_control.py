"""Mutants of the controller: what keeps ranks of one mind, and what keeps the mind from being misled."""

from tests.mutants.mutant import Mutant

SENSE = "tests/control/test_sense.py::"
DECIDE = "tests/control/test_controller.py::"
AGREE = "tests/control/test_agreement.py::"
PRICE = "tests/control/test_price.py::"
REAL = "tests/distributed/test_adaptive.py::"

OF_CONTROL = (
    Mutant(
        name="believe-every-measurement",
        safeguard="A single odd measurement is not believed",
        file="control/track.py",
        old="        return math.exp(median(self.logs))\n",
        new="        return math.exp(self.logs[-1])\n",
        tests=(f"{SENSE}test_odd_ones_do_not_flip_it",),
    ),
    Mutant(
        name="never-forget",
        safeguard="A change makes everything older forgotten",
        file="control/track.py",
        old="            return replace(self, logs=newest)\n",
        new="            pass\n",
        tests=(f"{SENSE}test_a_change_is_known_after_three_steps[50.0]",),
    ),
    Mutant(
        name="measure-nonsense",
        safeguard="A measurement that makes no sense is as none",
        file="control/track.py",
        old="math.isfinite(value) and SMALLEST <= value <= LARGEST",
        new="value > 0",
        tests=(f"{SENSE}test_nonsense_is_survived",),
    ),
    Mutant(
        name="bytes-pay-for-rounds",
        safeguard="What rounds took is not taken for what bytes took",
        file="control/network.py",
        old="        moving = done.seconds - waiting\n",
        new="        moving = done.seconds\n",
        tests=(f"{SENSE}test_bytes_and_rounds_are_told_apart",),
    ),
    Mutant(
        name="hear-the-first-rank",
        safeguard="The slowest rank decides, whoever it is",
        file="control/notes.py",
        old="median if name in _TYPICAL else max",
        new="median if name in _TYPICAL else (lambda known: known[0])",
        tests=(f"{AGREE}test_the_slowest_rank_decides",),
    ),
    Mutant(
        name="never-listen",
        safeguard="Messages that go along with roll calls go apart from time to time, or nobody knows the wire",
        file="control/learn.py",
        old="return state.step <= PAUSES[0] or state.silent >= pause",
        new="return False",
        tests=(f"{DECIDE}test_a_change_is_heard_where_all_messages_go_along_with_roll_calls",),
    ),
    Mutant(
        name="the-first-wait-is-a-delay",
        safeguard="Of the last two to come to the vote, one waits as much less than a delay as the other waits more",
        file="control/notes.py",
        old="sum(sorted(waits)[:2]) / min(len(waits), 2)",
        new="sorted(waits)[0]",
        tests=(f"{AGREE}test_one_delay_follows_from_the_two_shortest_waits",),
    ),
    Mutant(
        name="switch-for-nothing",
        safeguard="A plan must be better by a margin, and for some steps",
        file="control/controller.py",
        old="if now > 0.0 and scores[best] <= now * (1.0 + self.margin):",
        new="if best == menu.places[state.choice]:",
        tests=(f"{DECIDE}test_what_is_not_better_by_the_margin_is_not_switched_to",),
    ),
    Mutant(
        name="any-stride",
        safeguard="A change of density is bounded",
        file="control/controller.py",
        old="        if low <= menu.worths[best] <= high:\n",
        new="        if low < high:\n",
        tests=(f"{DECIDE}test_a_change_of_density_is_bounded",),
    ),
    Mutant(
        name="no-guard",
        safeguard="In a critical phase more goes through",
        file="control/policies.py",
        old="        needed = min(max(floor, self.floor), float(self.gains.max()))\n",
        new="        needed = min(floor, float(self.gains.max()))\n",
        tests=(f"{DECIDE}test_a_critical_phase_gets_more",),
    ),
    Mutant(
        name="one-odd-step-is-a-phase",
        safeguard="One odd step is chance",
        file="control/guard.py",
        old="self.calm if count >= 2 else",
        new="self.calm if count >= 1 else",
        tests=(f"{PRICE}test_the_guard_sees_jumps_and_old_debts",),
    ),
    Mutant(
        name="a-leader-is-worth-as-much",
        safeguard="A leader's coordinates are worth less than one's own",
        file="control/menu.py",
        old="OWN, SHARED = 1.0, 1 / 3",
        new="OWN, SHARED = 1.0, 1.0",
        tests=(f"{PRICE}test_a_leaders_coordinates_are_worth_less_than_ones_own",),
    ),
    Mutant(
        name="hidden-time-costs",
        safeguard="What hides behind backward costs nothing",
        file="control/price.py",
        old="conditions.compute + busy - hidden(busy, conditions)",
        new="conditions.compute + busy",
        tests=(f"{PRICE}test_what_hides_behind_backward_costs_nothing",),
    ),
    Mutant(
        name="forget-half-of-the-mind",
        safeguard="A state is saved with how long the plan is left alone",
        file="control/mind.py",
        old='        "hold": state.hold,\n',
        new='        "hold": 0,\n',
        tests=(f"{AGREE}test_a_state_is_written_and_read_to_the_bit",),
    ),
    Mutant(
        name="of-two-minds",
        safeguard="Ranks whose controllers differ find out in the first vote",
        file="control/pilot.py",
        old="        if odd := tuple(rank for rank, mind in enumerate(minds) if mind != usual):\n",
        new="        if odd := tuple(rank for rank in range(0)):\n",
        tests=(f"{REAL}test_ranks_of_different_minds_find_out_in_the_first_vote",),
        also=("Failed",),
    ),
    Mutant(
        name="resume-without-a-mind",
        safeguard="A resumed run goes on with the controller it had",
        file="sync.py",
        old="            mind=self._pilot.save(),\n",
        new="",
        tests=(f"{REAL}test_a_resumed_controller_goes_on_to_the_bit",),
    ),
    Mutant(
        name="rejoin-with-old-thoughts",
        safeguard="After a failure controllers begin anew: ranks may have heard different things",
        file="sync.py",
        old="        self._steer(self._pilot.reset())\n",
        new="        self._steer(self._pilot)\n",
        tests=(f"{REAL}test_a_controller_comes_and_goes",),
    ),
)
