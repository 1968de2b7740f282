"""Small training tasks on real data that every machine with Python has."""
