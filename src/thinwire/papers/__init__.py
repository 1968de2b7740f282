"""What the papers calculate, for comparison with what is measured here. Nothing in the data path imports this."""
