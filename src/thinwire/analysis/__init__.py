"""What compression does to a training run, measured: contraction, thresholds, distributions, quality."""
