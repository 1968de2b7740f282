"""What happened: counters and spans from every arrow of the data path."""
