"""What tokens of the cache look at, computed in a second context."""
