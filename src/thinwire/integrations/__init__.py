"""thinwire in frameworks that wrap the model themselves. Each module imports its framework, and nothing else does."""
