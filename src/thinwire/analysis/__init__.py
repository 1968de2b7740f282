"""Diagnostics: what gradients are like, beside what papers say about them."""
