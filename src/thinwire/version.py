"""The version, from the package's own metadata."""

from importlib import metadata

try:
    __version__ = metadata.version("thinwire")
except metadata.PackageNotFoundError:  # imported from a bare source tree
    __version__ = "0+unknown"
