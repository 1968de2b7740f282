"""A laboratory on one machine: real ranks in real processes, real links between them."""
