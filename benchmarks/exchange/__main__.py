"""`thinwire bench exchange` from a checkout, with the peers: `python -m benchmarks.exchange`."""

import sys

from thinwire.cli import main

sys.exit(main(["bench", "exchange", "--peers", "benchmarks.peers", *sys.argv[1:]]))
