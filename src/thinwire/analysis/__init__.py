"""Diagnostics: what gradients are like and what compression does to a training run, beside what papers say."""
