"""Whose coordinates? One file for each answer."""

from thinwire.agreements.leader import Leader
from thinwire.agreements.leaders import Leaders
from thinwire.agreements.norm_leader import NormLeader
from thinwire.agreements.own import Own
from thinwire.agreements.seeded import Seeded
from thinwire.protocols import Agreement
from thinwire.registry import Table

AGREEMENTS: Table[Agreement] = Table(
    "agreement", {"own": Own, "leader": Leader, "norm-leader": NormLeader, "leaders": Leaders, "seeded": Seeded}
)

__all__ = ["AGREEMENTS", "Leader", "Leaders", "NormLeader", "Own", "Seeded"]
