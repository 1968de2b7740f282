"""A laboratory on one machine: real ranks in real processes, real links between them.

`thinwire.lab.ranks` runs functions on ranks over plain loopback. `cluster` makes hosts in network namespaces, each with
an access link of its own that is as slow, as far and as unreliable as a network's description says.
"""

from thinwire.lab.clusters import Cluster, Count, cluster, run_in
from thinwire.lab.errors import LabFailed, LabMissing, LabRefused
from thinwire.lab.jobs import Ended, Job
from thinwire.lab.leftovers import clean, find
from thinwire.lab.link import Link
from thinwire.lab.networks import NETWORKS, Network, network
from thinwire.lab.schedules import Change, Schedule, read_schedule

__all__ = [
    "NETWORKS",
    "Change",
    "Cluster",
    "Count",
    "Ended",
    "Job",
    "LabFailed",
    "LabMissing",
    "LabRefused",
    "Link",
    "Network",
    "Schedule",
    "clean",
    "cluster",
    "find",
    "network",
    "read_schedule",
    "run_in",
]
