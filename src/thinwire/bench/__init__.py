"""Measuring thinwire. One package for each benchmark; `thinwire.cli.bench` is its command."""
