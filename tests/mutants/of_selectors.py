"""Mutants of selectors by threshold, of importance and of random leaders."""

from tests.mutants.mutant import Mutant

NEAR = "tests/unit/test_near_k.py::"
IMPORTANCE = "tests/unit/test_importance.py::"
TRACES = "tests/unit/test_traces.py::"

OF_SELECTORS = (
    Mutant(
        name="trust-a-threshold-that-misses",
        safeguard="Where no threshold comes near k, it is selected exactly",
        file="selectors/gaussian_k.py",
        old="    return kernels.top_k(strengths, k)\n",
        new="    return found\n",
        tests=(f"{NEAR}test_where_no_threshold_fits_the_corrected_one_selects_exactly[7-ties]",),
    ),
    Mutant(
        name="never-correct-a-threshold",
        safeguard="A threshold from a sample is corrected before anything is selected exactly",
        file="selectors/gaussian_k.py",
        old="before, here = (here, gap), min(max(here + step, here / 4), 4 * here)",
        new="before = (here, gap)",
        tests=(f"{NEAR}test_the_corrected_threshold_is_within_a_tenth_of_k_in_five_looks[gaussian-0.001]",),
    ),
    Mutant(
        name="send-zeros",
        safeguard="Zeros reach no threshold, not even one of zero",
        file="selectors/near.py",
        old="max(threshold, least)",
        new="threshold",
        tests=(f"{NEAR}test_zeros_reach_no_threshold",),
    ),
    Mutant(
        name="send-more-than-was-allowed",
        safeguard="Of what passed a threshold, at most k go on",
        file="selectors/near.py",
        old="    if indices.numel() <= k:\n",
        new="    if True:\n",
        tests=(f"{NEAR}test_a_sample_gives_about_k_and_never_more",),
    ),
    Mutant(
        name="follow-any-threshold",
        safeguard="A debt that no threshold left behind gives none",
        file="selectors/controlled.py",
        old="if k == 0 or not k <= FAR * count <= FAR * FAR * k:",
        new="if k == 0 or not count:",
        tests=(f"{NEAR}test_control_starts_anew_where_the_debt_is_of_another_plan",),
    ),
    Mutant(
        name="control-without-a-correction",
        safeguard="The threshold follows the count",
        file="selectors/controlled.py",
        old="last * (count / k) ** self.gain",
        new="last",
        tests=(f"{NEAR}test_control_keeps_near_k_with_one_look_at_a_step",),
    ),
    Mutant(
        name="divide-by-new-weights",
        safeguard="Weights of zero tell nothing about importance",
        file="selectors/importance.py",
        old="return epsilon if usual else None",
        new="return epsilon",
        tests=(f"{IMPORTANCE}test_without_weights_and_with_new_ones_of_zero_it_is_top_k_by_layers",),
    ),
    Mutant(
        name="one-threshold-for-all-layers",
        safeguard="Importance is compared within a layer",
        file="ledger.py",
        old="        known = weights if weights is not None else [None] * len(spans)\n",
        new="        return [Layer(0, self.layout.numel)]\n        known = weights or [None] * len(spans)\n",
        tests=(f"{IMPORTANCE}test_each_layer_selects_what_matters_most_in_parts_of_its_weights",),
    ),
    Mutant(
        name="weights-in-the-order-of-indices",
        safeguard="Weights lie in the order in which DDP lays out gradients",
        file="units.py",
        old="    return parameter.detach().permute(_memory_order(parameter)).reshape(-1)\n",
        new="    return parameter.detach().reshape(-1)\n",
        tests=(
            f"{IMPORTANCE}test_weights_lie_as_gradients_do",
            "tests/distributed/test_weights.py::test_what_is_important_follows_from_the_weights_of_each_element",
        ),
    ),
    Mutant(
        name="importance-without-weights",
        safeguard="What compares gradients with weights is refused where there are none",
        file="standalone.py",
        old="    if plan.selector.looks_at_weights:\n",
        new="    if False:\n",
        tests=(f"{IMPORTANCE}test_mistakes_are_told[<lambda>-attach a model]",),
    ),
    Mutant(
        name="hear-one-leader-only",
        safeguard="The units of every leader are sent",
        file="agreements/leaders.py",
        old="parts = [each.indices.cpu() for each in told]",
        new="parts = [told[0].indices.cpu()]",
        tests=(f"{IMPORTANCE}test_all_send_what_any_leader_wants[2]",),
    ),
    Mutant(
        name="never-sweep",
        safeguard="Every element is sent at least once in a number of steps",
        file="agreements/leaders.py",
        old="start = min(turn.step % self.sweep, first.units)",
        new="start = 0",
        tests=(f"{IMPORTANCE}test_the_sweep_reaches_every_element_in_time",),
    ),
    Mutant(
        name="the-same-leaders-for-ever",
        safeguard="Leaders are drawn for every step",
        file="agreements/leaders.py",
        old="_lot(seed_of(turn, self.seed, rank))",
        new="_lot(self.seed + rank)",
        tests=(f"{IMPORTANCE}test_leaders_are_drawn_for_every_step_and_all_ranks_know_them",),
    ),
    Mutant(
        name="read-any-trace",
        safeguard="A trace of another format is refused",
        file="traces.py",
        old='        if said["format"] != FORMAT:\n',
        new="        if False:\n",
        tests=(f"{TRACES}test_what_is_no_trace_is_refused",),
    ),
)
