"""Mutated traces, cache files and messages: whatever comes in, what comes out is right or a typed refusal."""
