"""The headline: everybody, 4 hosts, four networks, messages of 5 and 25 million: `python -m benchmarks.headline`.

It prints the table, draws the picture, and leaves both with all times in `benchmarks/results`; more options of
`thinwire bench exchange` may be added and go first. It needs the rights to make network namespaces.
"""

import sys
from pathlib import Path

from thinwire.cli import main

RESULTS = Path(__file__).resolve().parent / "results"
NETS = ("rate=10mbit", "office-100m", "lan-1g", "wan-100m-20ms")
USUAL = {
    "--peers": "benchmarks.peers",
    "--sizes": "5M,25M",
    "--densities": "0.1%,1%",
    "--plans": "dense,topk_allgather,topk_allgather:int4,ar_topk,"
    "ar_topk@10%,topk_allgather@10%,topk_allgather:int4@10%,topk_allgather:int4@20%",
    "--net": ",".join(NETS),
    "--hosts": "4",
    "--rounds": "2",
    "--seconds": "0.5",
    "--limit": "40",
    "--json": str(RESULTS / "exchange.json"),
    "--csv": str(RESULTS / "exchange.csv"),
    "--plot": str(RESULTS / "exchange.svg"),
}


def words(more: list[str]) -> list[str]:
    """The command's words: what is usual, but for what was given."""
    usual = [word for name, value in USUAL.items() if name not in more for word in (name, value)]
    return ["bench", "exchange", *usual, *more]


if __name__ == "__main__":
    sys.exit(main(words(sys.argv[1:])))
