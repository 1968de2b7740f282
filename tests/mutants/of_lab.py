"""Mutants of the emulated hosts."""

from tests.mutants.mutant import Mutant

_HOSTS = "tests/lab/test_hosts.py::"
_LEFT = "tests/lab/test_left_behind.py::"
_SAID = "tests/lab/test_descriptions.py::"

OF_LAB = (
    Mutant(
        name="unverified-excess",
        safeguard="A link that carries more than it was set to is found before it is used",
        file="lab/verify.py",
        old="    if worst.found > worst.wanted:\n",
        new="    if worst.found > worst.wanted:\n        return\n    if False:\n",
        tests=(f"{_HOSTS}test_shaping_that_did_not_take_is_found[unshaped]",),
    ),
    Mutant(
        name="unverified-delay",
        safeguard="A delay that is not there is found before it is missed",
        file="lab/verify.py",
        old="        if not any(wrong):\n            return\n",
        new="        if wrong:\n            return\n",
        tests=(f"{_HOSTS}test_a_delay_that_did_not_take_is_found",),
    ),
    Mutant(
        name="any-load",
        safeguard="More than can be held faithfully is refused",
        file="lab/relay.py",
        old="    if total > most:\n",
        new="    if False:\n",
        tests=(f"{_SAID}test_more_than_can_be_held_is_refused",),
    ),
    Mutant(
        name="mended-by-partition",
        safeguard="A host that is cut off stays so, whatever the groups are",
        file="lab/keeper.py",
        old="[host for host in group if host not in self._cut]",
        new="list(group)",
        tests=(f"{_HOSTS}test_a_host_can_be_cut_off_and_let_back",),
    ),
    Mutant(
        name="flooding-bridge",
        safeguard="Frames go to the host that they are for, and to no other host's link",
        file="lab/switch.py",
        old='        if lines:\n            self.centre.run(["bridge"',
        new='        if not lines:\n            self.centre.run(["bridge"',
        tests=(f"{_HOSTS}test_interfaces_count_to_the_byte",),
    ),
    Mutant(
        name="silent-relay",
        safeguard="The end of what holds packets back is told to those who wait",
        file="lab/keeper.py",
        old="            if self._relay.ended():\n",
        new="            if False:\n",
        tests=(f"{_LEFT}test_a_killed_relay_is_noticed",),
    ),
    Mutant(
        name="everybody-is-an-orphan",
        safeguard="A lab whose owner lives is never cleaned away",
        file="lab/leftovers.py",
        old="if lab.orphaned]\n",
        new="if lab]\n",
        tests=(f"{_LEFT}test_a_lab_whose_keeper_hangs_is_cleaned_away",),
    ),
)
