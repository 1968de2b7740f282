"""One page of what runs came to: pictures and words, in one file that needs nothing else."""
