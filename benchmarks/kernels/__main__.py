"""`thinwire bench kernels` from a checkout: `python -m benchmarks.kernels`, or `python benchmarks/kernels`."""

import sys

from thinwire.cli import main

sys.exit(main(["bench", "kernels", *sys.argv[1:]]))
