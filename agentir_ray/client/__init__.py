"""What a caller holds: `Memory`, and `AsyncMemory`, which delegates to it."""
