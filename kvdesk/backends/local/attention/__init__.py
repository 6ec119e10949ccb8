"""Computes what tokens of the cache look at, in a second context."""
