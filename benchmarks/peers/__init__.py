"""Other people's ways to exchange gradients, as contestants of `thinwire bench exchange`.

The adapters here are ours and thin; none of the peers' code is. A peer is taken from where it is installed, or from a
checkout of its repository in the folder that the environment variable ``THINWIRE_PEERS`` names. One that is not there
is reported as absent, with how to get it. Every peer is given its best: the whole gradient in one piece where it can
take it, one bucket, no layers of Python in between.
"""

from collections.abc import Sequence

from benchmarks.peers import demo, epfml, grace, naive, torch_hooks
from thinwire.bench.exchange.method import Contestant


def contestants(densities: Sequence[float]) -> list[Contestant]:
    """Every peer, those that are absent too."""
    return [
        *torch_hooks.contestants(),
        *naive.contestants(densities),
        *grace.contestants(densities),
        *demo.contestants(),
        *epfml.contestants(),
    ]
