"""Whose coordinates? One file for each answer."""

from thinwire.agreements.leader import Leader
from thinwire.agreements.norm_leader import NormLeader
from thinwire.agreements.own import Own
from thinwire.agreements.seeded import Seeded
from thinwire.protocols import Agreement
from thinwire.registry import Table

AGREEMENTS: Table[Agreement] = Table(
    "agreement", {"own": Own, "leader": Leader, "norm-leader": NormLeader, "seeded": Seeded}
)

__all__ = ["AGREEMENTS", "Leader", "NormLeader", "Own", "Seeded"]
